import json

import pytest
from heard import Heard
from hypothesis import given
from hypothesis import strategies as st

from mrag_cli.ground.errors import IndexUnsupported, InputError
from mrag_cli.records.models import Deletion, Document, DocumentGroup, Foreign, Marker, StreamPart, Unit
from mrag_cli.records.stream import check_marker_pointers, map_groups, read_stream, write_lines

_WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
_IDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6).filter(str.strip)
_EXTRA = st.dictionaries(
    st.sampled_from(["x", "later\u2028"]), st.none() | st.booleans() | _WORDS, max_size=2
)


@st.composite
def _groups(draw: st.DrawFn) -> DocumentGroup:
    doc = draw(_IDS)
    texts = draw(st.lists(_WORDS, min_size=1, max_size=3))
    units = tuple(
        Unit(
            doc,
            number,
            text,
            draw(st.integers(0, 9)),
            tuple(draw(st.lists(_WORDS, max_size=2))),
            (0, 3),
            draw(_EXTRA),
        )
        for number, text in enumerate(texts, 1)
    )
    pointers = st.sets(st.integers(1, len(texts)), min_size=1).map(lambda found: tuple(sorted(found)))
    marker = st.builds(
        Marker,
        st.just(doc),
        _WORDS,
        _WORDS,
        pointers,
        _WORDS,
        st.none() | st.integers(0, 9),
        st.lists(_WORDS, max_size=2).map(tuple),
        _WORDS,
        st.none() | _WORDS.filter(bool),
        st.none() | st.just({"category": None, "nouns": ["a"]}),
        st.lists(_WORDS, max_size=2).map(tuple),
        _EXTRA,
    )
    markers = tuple(draw(st.lists(marker, max_size=3)))
    document = Document(doc, draw(_WORDS), draw(_WORDS), len(texts), 5, {"year": 3}, draw(_EXTRA))
    places = sorted(draw(st.lists(st.integers(1, 1 + len(units) + len(markers)), max_size=2)))
    foreign = tuple(
        (place, Foreign(b'{"type":"note","n":%d}' % number)) for number, place in enumerate(places)
    )
    return DocumentGroup(document, units, markers, foreign)


_NOTES = st.integers(0, 9).map(lambda n: Foreign(b'{"type":"x","n":%d}' % n))
_PARTS = st.lists(
    st.one_of(_groups(), st.builds(Deletion, _IDS, _EXTRA), _NOTES),
    max_size=4,
    unique_by=lambda part: part.document.doc if isinstance(part, DocumentGroup) else id(part),
)


def _lines(parts: list[StreamPart]) -> list[bytes]:
    return [line for part in parts for line in write_lines(part)]


def _read(*lines: str | bytes, check_pointers: bool = True, heard: Heard | None = None) -> list[StreamPart]:
    raw = [line if isinstance(line, bytes) else line.encode() + b"\n" for line in lines]
    return list(read_stream(raw, "s", heard or Heard(), check_pointers=check_pointers))


@given(_PARTS)
def test_streams_come_back_byte_for_byte(parts: list[StreamPart]) -> None:
    """What is written is read as it was, and written again the same, whatever it holds."""
    lines = _lines(parts)
    again = list(read_stream(lines, "s", Heard()))
    assert _lines(again) == lines
    assert all(line.endswith(b"\n") and line.count(b"\n") == 1 for line in lines)
    groups = [part for part in parts if isinstance(part, DocumentGroup)]
    read = [part for part in again if isinstance(part, DocumentGroup)]
    assert [(group.document, group.units, group.markers) for group in read] == [
        (group.document, group.units, group.markers) for group in groups
    ]


def _document(doc: str = "a", units: int = 1, **more: object) -> str:
    return json.dumps({"type": "document", "doc": doc, "units": units, **more})


def _unit(doc: str = "a", number: int = 1, **more: object) -> str:
    return json.dumps({"type": "unit", "doc": doc, "unit": number, "text": "t", **more})


def _marker(doc: str = "a", pointers: object = (1,), **more: object) -> str:
    return json.dumps({"type": "marker", "doc": doc, "key": "k", "value": "v", "pointers": pointers, **more})


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["{}"], 's:1: field "type" is missing'),
        ([_unit()], "s:1: a unit before any document"),
        ([_document(), _unit("b")], r"s:2: a unit of 'b' among the records of 'a' \(line 1\)"),
        ([_document(), _unit(number=2)], "s:2: unit 2 of 'a' where unit 1 is expected"),
        ([_document(units=2), _unit()], "s:1: 'a' announces 2 units, 1 follow"),
        ([_document(), _unit(), _marker(pointers=[2])], "s:3: pointer 2 is out of range"),
        ([_document(), _unit(), _marker(pointers=[])], "s:3: the marker points to no unit"),
        ([_document(), _unit(span=[3])], 's:2: field "span"'),
        ([_document(), _unit(span=[3, 1])], 's:2: field "span"'),
        ([_document(doc=" ")], 's:1: field "doc" is blank'),
        ([_document(), _document("b"), _document(title="other")], "s:3: 'a' comes twice.*line 1"),
        (['{"type":"deletion"}'], 's:1: field "doc" is missing'),
    ],
)
def test_malformed_streams(lines: list[str], message: str) -> None:
    """A stream that makes no sense is refused with the line, what is wrong and what to do."""
    with pytest.raises(InputError, match=message):
        _read(*lines)


def test_a_newer_format() -> None:
    """A newer stream format is refused as such."""
    with pytest.raises(IndexUnsupported, match="s:1: stream format 2 is newer"):
        _read(_document(format=2))


def test_the_same_document_again() -> None:
    """A document that comes again with the same content is left out with a notice."""
    heard = Heard()
    assert len(_read(_document(), _unit(), _document(), _unit(), heard=heard)) == 1
    assert heard.notices == ["s:3: 'a' again, as on line 1; left out"]


def test_deletions_and_strangers_pass_in_place() -> None:
    """Records of other types and deletions keep their place among the documents."""
    parts = _read(
        '{"type":"x"}', '{"type":"deletion","doc":"z"}', _document(units=0), '{"type":"y"}', _document("b", 0)
    )
    assert [type(part).__name__ for part in parts] == [
        "Foreign",
        "Deletion",
        "DocumentGroup",
        "DocumentGroup",
    ]
    changed = list(map_groups(parts, lambda group: DocumentGroup(group.document)))
    assert changed[:2] == parts[:2]
    assert isinstance(changed[2], DocumentGroup)
    assert changed[2].foreign == ()


@pytest.mark.parametrize(
    "names",
    [("retrieval_key", "info_value", "paragraph_idx"), ("k", "v", "p"), ("key", "value", "pointers")],
)
def test_other_field_names(names: tuple[str, str, str]) -> None:
    """A marker's fields are read under the names that the papers use, too; pointers are sorted and unique."""
    record = {"type": "marker", "doc": "a", **dict(zip(names, ("k1", "v1", [2, 1, 2]), strict=True))}
    (group,) = _read(_document(units=2), json.dumps(record))
    assert isinstance(group, DocumentGroup)
    assert group.markers == (Marker("a", "k1", "v1", (1, 2), "llm"),)
    assert group.marker_lines == (2,)


def test_pointers_that_are_not_checked() -> None:
    """Validation reads pointers out of range, to repair them."""
    (group,) = _read(_document(), _unit(), _marker(pointers=[7]), check_pointers=False)
    assert isinstance(group, DocumentGroup)
    with pytest.raises(InputError, match="out of range: 'a' has units 1 to 1"):
        check_marker_pointers(group.markers[0], 1, "s", 3)


def test_line_separators_do_not_split_lines() -> None:
    """U+2028 and its like inside a string are part of it."""
    record = {"type": "document", "doc": "a", "units": 0, "title": "a\u2028b\u0085c"}
    (group,) = _read(json.dumps(record, ensure_ascii=False))
    assert isinstance(group, DocumentGroup)
    assert group.document.title == "a\u2028b\u0085c"
