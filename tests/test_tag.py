from collections.abc import Iterator

import pytest
from heard import Heard
from hypothesis import given
from hypothesis import strategies as st

from mrag_cli.parts.sources import Source
from mrag_cli.parts.tokens import count
from mrag_cli.records.models import Deletion, DocumentGroup
from mrag_cli.records.stream import read_stream, write_lines
from mrag_cli.stages.tag import TagSettings, digest, tag, tag_changes

_TEXT = st.lists(
    st.one_of(
        st.sampled_from(
            ["\n\n", "# ", "\n## Head\n", "\n```\n", "\n- ", "One two three. ", "一句话。", "\u2028", "\r"]
        ),
        st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    ),
    max_size=16,
).map("".join)
_SETTINGS = st.builds(TagSettings, st.sampled_from([3, 8, 32]), st.sampled_from(["paragraph", "fixed"]))


def _group(source: Source, settings: TagSettings | None = None) -> DocumentGroup:
    (part,) = tag([source], settings or TagSettings(), Heard())
    assert isinstance(part, DocumentGroup)
    return part


@given(_TEXT, st.sampled_from(["text", "markdown"]), _SETTINGS)
def test_tag_loses_nothing(text: str, markup: str, settings: TagSettings) -> None:
    """Units are the text of their spans, ascend without overlap, and hold every character but white space."""
    group = _group(Source("a", text, "markdown" if markup == "markdown" else "text"), settings)
    before = 0
    for number, unit in enumerate(group.units, 1):
        start, end = unit.span
        assert unit.unit == number
        assert before <= start < end
        assert unit.text == text[start:end]
        assert unit.tokens == count(unit.text)
        assert not text[before:start].strip()
        before = end
    assert not text[before:].strip()
    assert group.document.units == len(group.units)
    assert group.document.tokens == count(text)


@given(_TEXT, _SETTINGS)
def test_what_is_tagged_can_be_read_again(text: str, settings: TagSettings) -> None:
    """The records come back from the stream as they were."""
    group = _group(Source("ü/\u2028.md", text, title="\x1b[31m", meta={"year": 3}), settings)
    (again,) = read_stream(list(write_lines(group)), "s", Heard())
    assert isinstance(again, DocumentGroup)
    assert (again.document, again.units) == (group.document, group.units)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (Source("a", "# Own", "markdown", title="Given", fallback_title="f"), "Given"),
        (Source("a", "# Own", "markdown", fallback_title="f"), "Own"),
        (Source("a", "# Own", "text", fallback_title="f"), "f"),
        (Source("a", "words", "markdown", fallback_title="f"), "f"),
        (Source("a", "words"), "a"),
    ],
)
def test_titles(source: Source, expected: str) -> None:
    """A title is the one given, else the text's own, else the fallback, else the id."""
    assert _group(source).document.title == expected


def test_a_document_without_text() -> None:
    """A document without any text has no units, and that is said."""
    heard = Heard()
    (part,) = tag([Source("a", " \n")], TagSettings(), heard)
    assert isinstance(part, DocumentGroup)
    assert (part.document.units, part.units) == (0, ())
    assert heard.notices == ["a: no text; the document has no units"]


def test_digests_change_with_text_and_settings() -> None:
    """The digest depends on the text, what is known of it and how it is cut, and on nothing else."""
    source = Source("a", "text", meta={"x": 1, "y": 2})
    same = Source("b", "text", fallback_title="t", meta={"y": 2, "x": 1})
    settings = TagSettings()
    assert digest(source, settings) == digest(same, settings) == _group(source).document.sha256
    others = [
        (Source("a", "other", meta={"x": 1, "y": 2}), settings),
        (Source("a", "text"), settings),
        (Source("a", "text", title="t", meta={"x": 1, "y": 2}), settings),
        (source, TagSettings(64)),
        (source, TagSettings(units="fixed")),
    ]
    assert len({digest(source, settings), *(digest(*other) for other in others)}) == 6


def test_changes() -> None:
    """Only new and changed documents are cut, and those that vanished are named last, in order."""
    settings = TagSettings()
    same, old, new = Source("r/same", "text"), Source("r/changed", "old"), Source("r/changed", "new")
    known = {
        "r/same": digest(same, settings),
        "r/changed": digest(old, settings),
        "r/z": "",
        "r/b": "",
        "other/x": "",
    }
    parts = list(
        tag_changes(
            [new, same, Source("r/new", "n")], settings, Heard(), known, lambda doc: doc.startswith("r/")
        )
    )
    assert [part.document.doc for part in parts if isinstance(part, DocumentGroup)] == ["r/changed", "r/new"]
    assert parts[2:] == [Deletion("r/b"), Deletion("r/z")]


def test_one_document_at_a_time() -> None:
    """A document is given out before the next is asked for."""
    asked: list[str] = []

    def sources() -> Iterator[Source]:
        for name in ("a", "b"):
            asked.append(name)
            yield Source(name, "text")

    parts = tag(sources(), TagSettings(), Heard())
    next(parts)
    assert asked == ["a"]
