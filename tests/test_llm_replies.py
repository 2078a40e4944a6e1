import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrag_cli.parts.llm.replies import MOST_POINTERS, Parsed, Record, parse, read_examples

GOOD = [
    {"key": "When was the lock built?", "value": "The lock at Herne was built in 1914.", "pointers": [1]},
    {"key": "Who keeps the lock?", "value": "Anna Weiss keeps the lock at Herne.", "pointers": [2, 3]},
]
UNITS = frozenset(range(1, 11))


def read(text: str, **changes: Any) -> Parsed:
    """Read a reply about units 1 to 10."""
    return parse(text, **{"truncated": False, "visible": UNITS, "wanted": UNITS, **changes})


def keys(text: str, **changes: Any) -> list[str]:
    """Return the keys of a reply's good records."""
    return [record.key for record in read(text, **changes).records]


def one(**fields: Any) -> str:
    """Return a reply of one record with changed fields; None leaves a field out."""
    record = {**GOOD[0], **fields}
    return json.dumps({"markers": [{name: value for name, value in record.items() if value is not None}]})


BODY = json.dumps({"markers": GOOD})


@pytest.mark.parametrize(
    "text",
    [
        BODY,
        json.dumps(GOOD),
        f"```json\n{BODY}\n```",
        f"```\n{json.dumps(GOOD, indent=2)}\n```",
        f"Here are the markers you asked for:\n\n{BODY}\n\nLet me know if you need more.",
        "\n".join(json.dumps(record) for record in GOOD),
        json.dumps({"meta_markers": GOOD}),
        json.dumps([{"markers": GOOD[:1]}, {"markers": GOOD[1:]}]),
        BODY.replace("}, {", "},\n {").replace("]}]}", "]},]}"),
        BODY.replace('"', "'").replace("'", '"', 4).replace('"', "'"),
        BODY.replace('"key"', "key"),
        BODY[:-2],
        json.dumps(
            [
                {"retrieval_key": r["key"], "info_value": r["value"], "paragraph_idx": r["pointers"]}
                for r in GOOD
            ]
        ),
        json.dumps([{"k": r["key"], "v": r["value"], "p": r["pointers"]} for r in GOOD]),
        BODY.replace("1914.", "1914,\n in spring."),
        "\ufeff" + BODY,
        f"<think>The units are [1] and [2].</think>{BODY}",
    ],
    ids=[
        "plain",
        "bare-array",
        "fence",
        "fence-indented",
        "prose",
        "lines",
        "other-name",
        "two-objects",
        "trailing-comma",
        "single-quotes",
        "bare-field-names",
        "end-missing",
        "papers-names",
        "short-names",
        "raw-newline",
        "bom",
        "reasoning",
    ],
)
def test_a_reply_is_read_however_it_is_dressed(text: str) -> None:
    """Both markers come out, with their values and pointers."""
    records = read(text).records
    assert [record.key for record in records] == [record["key"] for record in GOOD]
    assert [record.pointers for record in records] == [(1,), (2, 3)]
    assert "Herne" in records[0].value


@pytest.mark.parametrize(
    ("written", "pointers"),
    [
        ([1, 2], (1, 2)),
        (3, (3,)),
        ("3", (3,)),
        ("[3]", (3,)),
        ("<3>", (3,)),
        ("2-4", (2, 3, 4)),
        ("<2>-<4>", (2, 3, 4)),
        ("2–4", (2, 3, 4)),
        ("units 2 and 5", (2, 5)),
        (["2", "4"], (2, 4)),
        (["[2]", "[4]-[5]"], (2, 4, 5)),
        ([[2, 3]], (2, 3)),
        ([2.0], (2,)),
        ([3, 1, 3], (1, 3)),
        ([1, 99], (1,)),
        ([0, -1, 2], (2,)),
        ("第2至3段", (2, 3)),
    ],
)
def test_pointers_are_read_in_every_way_models_write_them(written: Any, pointers: tuple[int, ...]) -> None:
    """Numbers, text, ranges and lists; what is out of range is dropped from them."""
    assert read(one(pointers=written)).records[0].pointers == pointers


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"key": None}, "no key"),
        ({"key": "  "}, "no key"),
        ({"value": None}, "no value"),
        ({"value": " \n"}, "no value"),
        ({"value": "…"}, "no value"),
        ({"value": 7}, "no value"),
        ({"pointers": None}, "no pointer"),
        ({"pointers": []}, "no pointer"),
        ({"pointers": [True]}, "no pointer"),
        ({"pointers": [11, 12]}, "pointers out of range"),
        ({"pointers": list(range(1, MOST_POINTERS + 2))}, "too many pointers"),
        ({"pointers": "1-10"}, "too many pointers"),
    ],
)
def test_a_bad_record_is_dropped_alone_and_counted(fields: dict[str, Any], reason: str) -> None:
    """The good record beside it stays."""
    bad = json.loads(one(**fields))["markers"][0]
    parsed = read(json.dumps({"markers": [bad, GOOD[1]]}))
    assert [record.key for record in parsed.records] == [GOOD[1]["key"]]
    assert dict(parsed.dropped) == {reason: 1}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "I'm sorry, I cannot help with that.",
        "[]",
        "{}",
        '{"markers": []}',
        '{"error": "cannot"}',
        "null",
        "42",
        '"text"',
        "[1, 2, 3]",
        "{" * 5000,
        "[" * 5000,
        "[" + "9" * 6000 + "]",
        '{"markers": "none"}',
    ],
)
def test_refusals_and_empty_replies_are_no_markers(text: str) -> None:
    """Nothing comes out, and nothing breaks."""
    assert read(text).records == ()


def test_a_truncated_reply_gives_its_complete_records_alone() -> None:
    """Wherever the reply is cut, no record is half a record."""
    for cut in range(len(BODY)):
        for truncated in (True, False):
            for record in read(BODY[:cut], truncated=truncated).records:
                assert {"key": record.key, "value": record.value} in [
                    {"key": good["key"], "value": good["value"]} for good in GOOD
                ]
    assert keys(BODY[: BODY.index("}, {") + 30], truncated=True) == [GOOD[0]["key"]]


def test_records_about_units_that_were_not_asked_for_are_dropped() -> None:
    """A window's reply that repeats another window's markers is not paid with duplicates."""
    parsed = read(BODY, wanted={2})
    assert [record.key for record in parsed.records] == [GOOD[1]["key"]]
    assert dict(parsed.dropped) == {"about units that were not asked for": 1}


def test_a_record_said_twice_counts_once() -> None:
    """An exact repetition within a reply is dropped."""
    assert keys(json.dumps([*GOOD, *GOOD])) == [record["key"] for record in GOOD]


def test_records_that_repeat_the_few_shot_example_are_caught() -> None:
    """The example's text, whole, in part or with more around it, is no marker of this document."""
    shown = [Record("Example key?", "The Example Bridge in Exampleton was opened in 1871.", (1,))]
    for value in (
        shown[0].value,
        shown[0].value.upper(),
        "The Example Bridge in Exampleton was opened",
        shown[0].value + " It is old.",
    ):
        parsed = read(one(value=value), examples=shown)
        assert dict(parsed.dropped) == {"repeats the example": 1}, value
    assert len(read(BODY, examples=shown).records) == 2
    source = f"We know that {shown[0].value} And more."
    assert len(read(one(value=shown[0].value), examples=shown, source=source).records) == 1


def test_aliases_are_cleaned_and_limited() -> None:
    """Blank ones, repetitions of the key and more than were wanted are left out."""
    text = one(aliases=["Year of the lock", "", 5, GOOD[0]["key"], "Year of the lock", "Lock date", "More"])
    assert read(text, keys=3).records[0].aliases == ("Year of the lock", "Lock date")
    assert read(text, keys=1).records[0].aliases == ()


def test_what_no_stream_can_hold_is_taken_out_of_texts() -> None:
    """Lone surrogates and NUL characters vanish; the marker stays."""
    record = read('[{"key": "a\\ud800b", "value": "c\\u0000d", "pointers": [1]}]').records[0]
    assert (record.key, record.value) == ("ab", "cd")


def test_examples_are_read_as_json_and_as_lines() -> None:
    """An array, an object with markers, and one object a line are the same examples."""
    expected = [record["key"] for record in GOOD]
    for text in (BODY, json.dumps(GOOD), "\n".join(json.dumps(record) for record in GOOD)):
        assert [record.key for record in read_examples(text)] == expected
    assert read_examples("nothing") == ()


@settings(max_examples=300, deadline=None)
@given(
    text=st.text(alphabet="{}[]\",:\\ \nabkeyvaluepointers0123456789'`", max_size=200),
    truncated=st.booleans(),
)
def test_no_text_breaks_the_reading(text: str, truncated: bool) -> None:
    """Whatever a model says, reading it raises nothing, and every record is whole."""
    for record in read(text, truncated=truncated).records:
        assert record.key.strip()
        assert record.value.strip()
        assert set(record.pointers) <= UNITS


@settings(max_examples=100, deadline=None)
@given(
    values=st.lists(
        st.text(min_size=1, max_size=40).filter(lambda text: any(map(str.isalnum, text))), max_size=8
    )
)
def test_sound_json_gives_every_record(values: list[str]) -> None:
    """A reply in the form that was asked for loses nothing, whatever its texts hold."""
    records = [{"key": f"key {n}", "value": value, "pointers": [n + 1]} for n, value in enumerate(values)]
    assert len(read(json.dumps({"markers": records})).records) == len(values)
