from dataclasses import replace

import pytest
from heard import Heard
from hypothesis import given
from hypothesis import strategies as st

from mrag_cli.parts import tokens
from mrag_cli.parts.coverage import coverage
from mrag_cli.parts.validation_report import DocumentReport, Summary
from mrag_cli.records.models import Deletion, Document, DocumentGroup, Foreign, Marker, StreamPart, Unit
from mrag_cli.stages.validate import ValidateSettings, validate

_TEXTS = (
    "The lock at Hale was rebuilt in 1902.",
    "Grey herons nest on the moor.",
    "The bridge is made of iron plates.",
    "Eleanor Marsh opened the mill on 4 March 1871.",
    "Barges carry wool to the coast.",
)
_WORDS = st.sampled_from([*" ".join(_TEXTS).split(), "Norway", "1999", "", " "])
_TEXT = st.lists(_WORDS, max_size=6).map(" ".join)
_MARKERS = st.builds(
    Marker,
    doc=st.just("d"),
    key=_TEXT,
    value=_TEXT | st.sampled_from(_TEXTS),
    pointers=st.sets(st.integers(-1, 8), max_size=5).map(lambda numbers: tuple(sorted(numbers))),
    origin=st.sampled_from(["llm", "extractive", "fallback", "chop", "fixed"]),
    tokens=st.none() | st.integers(0, 9),
    aliases=st.lists(_TEXT, max_size=2).map(tuple),
    flags=st.lists(st.sampled_from(["ungrounded", "key-long", "seen"]), max_size=2).map(tuple),
)
_SETTINGS = st.builds(
    ValidateSettings,
    threshold=st.sampled_from([0.0, 0.95, 1.0]),
    max_width=st.integers(1, 4),
    ungrounded=st.sampled_from(["repair", "flag", "drop"]),
)


def _group(*markers: Marker, units: int = len(_TEXTS)) -> DocumentGroup:
    records = tuple(Unit("d", number, text, 9) for number, text in enumerate(_TEXTS[:units], 1))
    lines = tuple(range(units + 2, units + 2 + len(markers)))
    return DocumentGroup(Document("d", "0", "d", units, 50), records, markers, (), "s.jsonl", 1, lines)


def _marker(value: str, *pointers: int, key: str = "What stands beside the old canal basin?") -> Marker:
    return Marker("d", key, value, pointers, "llm")


def _validated(
    *parts: StreamPart, settings: ValidateSettings | None = None
) -> tuple[list[StreamPart], Summary, Heard, list[DocumentReport]]:
    summary, heard, reports = Summary(), Heard(), list[DocumentReport]()
    settings = settings or ValidateSettings()
    return list(validate(parts, settings, heard, summary, reports.append)), summary, heard, reports


def _markers(part: StreamPart) -> tuple[Marker, ...]:
    assert isinstance(part, DocumentGroup)
    return part.markers


@given(st.lists(_MARKERS, max_size=8), _SETTINGS)
def test_any_document_comes_out_usable(markers: list[Marker], settings: ValidateSettings) -> None:
    """Every unit is covered, pointers are in range, nothing is blank, and token counts are right."""
    result = _markers(_validated(_group(*markers), settings=settings)[0][0])
    assert coverage(result, len(_TEXTS)) == 1.0
    for marker in result:
        assert marker.pointers
        assert set(marker.pointers) <= set(range(1, len(_TEXTS) + 1))
        assert marker.key.strip()
        assert marker.value.strip()
        assert marker.tokens == tokens.count(marker.value)
        assert list(marker.flags) == sorted(set(marker.flags))
        assert marker.origin != "llm" or len(marker.pointers) <= settings.max_width
        assert all(alias.strip() for alias in marker.aliases)


@given(st.lists(_MARKERS, max_size=8), _SETTINGS)
def test_validating_again_changes_nothing(markers: list[Marker], settings: ValidateSettings) -> None:
    """A validated stream is a fixed point, and nothing is left to repair."""
    once = _validated(_group(*markers), settings=settings)[0]
    twice, summary, heard, _ = _validated(*once, settings=settings)
    assert twice == once
    assert not summary.repairs
    assert all("cover" in notice or "not in the document" in notice for notice in heard.notices)


@given(st.lists(_MARKERS, max_size=8))
def test_the_order_is_kept(markers: list[Marker]) -> None:
    """Markers that stay keep their order, and fallback markers come in the order of their units."""
    result = _markers(_validated(_group(*markers))[0][0])
    added = [marker for marker in result if marker.origin == "fallback" and marker.value in _TEXTS]
    values = [marker.value for marker in markers]
    stayed = [marker.value for marker in result if marker.value in values and marker.origin != "fallback"]
    positions = iter(values)
    assert all(value in positions for value in stayed)
    if not any(marker.origin == "fallback" for marker in markers):
        assert added == sorted(added, key=lambda marker: marker.pointers)


def test_a_good_marker_is_left_alone() -> None:
    """Its tokens are counted, nothing else changes; the units without markers get their own words."""
    good = _marker("The lock at Hale was rebuilt in 1902.", 1, key="When was the lock at Hale rebuilt?")
    (part,), summary, heard, _ = _validated(_group(good))
    assert _markers(part)[0] == replace(good, tokens=tokens.count(good.value))
    rest = [(marker.key, marker.value, marker.pointers, marker.origin) for marker in _markers(part)[1:]]
    assert rest == [(text, text, (number,), "fallback") for number, text in enumerate(_TEXTS[1:], 2)]
    assert (summary.coverage.mean, summary.coverage.fallbacks, summary.coverage.below) == (0.2, 4, 1)
    assert heard.notices == ["s.jsonl:1: the markers of 'd' cover 20.0 % of its units, less than 95.0 %"]


def test_a_fallback_stands_where_its_unit_belongs() -> None:
    """A fallback marker comes before the first marker that starts at a later unit."""
    markers = [_marker(_TEXTS[number - 1], number) for number in (1, 3, 5)]
    result = _markers(_validated(_group(*markers))[0][0])
    assert [marker.pointers for marker in result] == [(1,), (2,), (3,), (4,), (5,)]


def test_wrong_pointers_are_dropped_and_named() -> None:
    """A marker keeps its good pointers and goes when it has none; path and line are said."""
    (part,), summary, heard, _ = _validated(_group(_marker(_TEXTS[1], 2, 77), _marker(_TEXTS[0], 9)))
    assert [marker.pointers for marker in _markers(part)] == [(1,), (2,), (3,), (4,), (5,)]
    assert summary.repairs["pointer_dropped"] == 2
    assert summary.repairs["pointerless_dropped"] == 1
    assert heard.notices[:2] == [
        "s.jsonl:7: pointer 77 is out of range 1 to 5; it is dropped",
        "s.jsonl:8: pointer 9 is out of range 1 to 5; the marker is dropped",
    ]


def test_blank_values_go_and_blank_keys_become_the_value() -> None:
    """A marker needs something to return; one without a key is found by what it returns, and flagged."""
    (part,), summary, _, _ = _validated(_group(_marker(" \n", 1), _marker(_TEXTS[1], 2, key=" ")))
    kept = _markers(part)[1]
    assert (kept.key, kept.value, kept.flags) == (_TEXTS[1], _TEXTS[1], ("key-missing",))
    assert summary.repairs["blank_value_dropped"] == summary.repairs["blank_key_replaced"] == 1


def test_a_wide_marker_keeps_the_units_its_value_is_about() -> None:
    """The units that hold most of the value's words stay; only an LLM's markers are narrowed."""
    wide = _marker("Grey herons nest on the moor; the bridge is made of iron plates.", 1, 2, 3, 4, 5)
    settings = ValidateSettings(max_width=2)
    (part,), *_ = _validated(_group(wide), settings=settings)
    assert (2, 3) in [marker.pointers for marker in _markers(part)]
    (part,), *_ = _validated(_group(replace(wide, origin="chop")), settings=settings)
    assert [marker.pointers for marker in _markers(part)] == [(1, 2, 3, 4, 5)]


@pytest.mark.parametrize(
    ("action", "values"),
    [
        ("repair", [_TEXTS[0], *_TEXTS[:5]]),
        ("drop", [_TEXTS[0], *_TEXTS[1:5]]),
        ("flag", [_TEXTS[0], "Rebuilt in 1907 by Ole Bakken.", *_TEXTS[1:5]]),
    ],
)
def test_what_becomes_of_an_ungrounded_marker(action: str, values: list[str]) -> None:
    """Repair puts its units' words in its place though another marker covers them; drop and flag do not."""
    group = _group(_marker(_TEXTS[0], 1), _marker("Rebuilt in 1907 by Ole Bakken.", 1))
    (part,), summary, heard, reports = _validated(group, settings=ValidateSettings(ungrounded=action))
    assert sorted(marker.value for marker in _markers(part)) == sorted(values)
    assert summary.flags["ungrounded"] == 1
    assert "s.jsonl:8: not in the document: 1907, Ole Bakken" in heard.notices
    finding = reports[0].findings[0]
    assert (finding.flags[-1], finding.line, finding.dropped) == ("ungrounded", 8, action != "flag")


def test_earlier_flags_are_replaced_and_others_kept() -> None:
    """Flags that validation sets are set afresh; a user's own stay."""
    marker = replace(
        _marker(_TEXTS[0], 1, key="When was the Hale lock rebuilt?"), flags=("mine", "ungrounded")
    )
    assert _markers(_validated(_group(marker))[0][0])[0].flags == ("mine",)


def test_strict_fails_a_faulty_document_and_no_other() -> None:
    """With strict, a document with a fault or too little coverage is left out and named with its lines."""
    good = _group(*(_marker(text, number) for number, text in enumerate(_TEXTS, 1)))
    bad = _group(_marker(_TEXTS[0], 99), *good.markers[1:])
    settings = ValidateSettings(strict=True)
    parts, summary, heard, reports = _validated(bad, good, settings=settings)
    assert [len(_markers(part)) for part in parts] == [5]
    assert [name for name, _ in heard.failures] == ["d"]
    assert "s.jsonl:7: pointer 99 is out of range 1 to 5" in heard.failures[0][1]
    assert "cover 80.0 % of its units" in heard.failures[0][1]
    assert (summary.failed, [report.failed for report in reports]) == (1, [True, False])


def test_strict_allows_small_gaps() -> None:
    """Coverage at the threshold is enough; the unit that is left falls back."""
    group = _group(*(_marker(text, number) for number, text in enumerate(_TEXTS[:4], 1)))
    parts, _, heard, _ = _validated(group, settings=ValidateSettings(threshold=0.8, strict=True))
    assert heard.failures == []
    assert _markers(parts[0])[-1].origin == "fallback"


def test_a_document_without_unit_records_gets_no_fallback() -> None:
    """Pointers are checked against the number of units, and nothing is made up."""
    group = replace(_group(_marker("Opened in 1999.", 2, 9)), units=())
    (part,), summary, _, _ = _validated(group)
    assert [marker.pointers for marker in _markers(part)] == [(2,)]
    assert summary.coverage.below == 1


def test_documents_without_units_and_other_records_pass() -> None:
    """An empty document, a deletion and a foreign record go through as they are."""
    parts: list[StreamPart] = [_group(units=0), Deletion("x"), Foreign(b'{"type":"note"}')]
    result, _, heard, _ = _validated(*parts)
    assert result == [replace(_group(units=0), marker_lines=()), *parts[1:]]
    assert heard.notices == []


def test_a_blank_unit_does_no_harm() -> None:
    """A unit of white space, which no tagger writes, is covered all the same."""
    group = _group(_marker(_TEXTS[0], 1), units=2)
    group = replace(group, units=(group.units[0], replace(group.units[1], text=" \n")))
    once = _validated(group)[0]
    assert coverage(_markers(once[0]), 2) == 1.0
    assert _validated(*once)[0] == once


def test_many_faults_of_a_kind_are_not_all_told() -> None:
    """After ten notices of a kind the others are counted."""
    _, _, heard, _ = _validated(_group(*[_marker(_TEXTS[0], 1, 99)] * 15), settings=ValidateSettings(0.0))
    assert len(heard.notices) == 11
    assert heard.notices[-1] == "pointers: 5 more, not listed"
