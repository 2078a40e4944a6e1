import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrag_cli.ground.errors import InputError
from mrag_cli.records.lines import Fields, read_json_lines, shown

_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("ab\u2028", max_size=3), inner, max_size=3)
    ),
    max_leaves=5,
)


@given(st.lists(st.dictionaries(st.text("ab\u2028", max_size=3), _JSON, max_size=3), max_size=4))
def test_objects_come_back(objects: list[dict[str, object]]) -> None:
    """What was written a line each is read again, with its line's number and bytes."""
    lines = [json.dumps(value, ensure_ascii=False).encode() + b"\n" for value in objects]
    read = list(read_json_lines(lines, "s"))
    assert [value for _, _, value in read] == objects
    assert [number for number, _, _ in read] == list(range(1, len(objects) + 1))
    assert [line + b"\n" for _, line, _ in read] == lines


def test_blank_lines_and_byte_order_mark() -> None:
    """A byte order mark before the first line, CR LF and blank lines are accepted; blank lines count."""
    read = read_json_lines([b'\xef\xbb\xbf{"a":1}\r\n', b"\n", b" \t\n", b'{"a":2}'], "s")
    assert [(number, value) for number, _, value in read] == [(1, {"a": 1}), (4, {"a": 2})]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{", "s:2: not JSON"),
        (b"[1]", "s:2: a list, not a JSON object"),
        (b'"x"', "s:2: a str, not"),
        (b'{"a":"\\ud800"}', "s:2: not JSON .*unpaired surrogate"),
        (b'{"a":"\xff"}', "s:2: not JSON .*not UTF-8"),
        (b"\xff\xfe{\0", "s:2: not JSON .*UTF-16"),
        (b'{"a":NaN}', "s:2: not JSON .*fix or remove"),
    ],
)
def test_what_is_no_object(line: bytes, message: str) -> None:
    """A line that is no object is said with its place and what to do."""
    with pytest.raises(InputError, match=message) as caught:
        list(read_json_lines([b"{}\n", line], "s"))
    assert (caught.value.path, caught.value.line) == ("s", 2)


def _fields(**value: object) -> Fields:
    return Fields("s", 3, value)


def test_fields_that_are_there() -> None:
    """Fields are returned as their type, or as the default where they are missing or null."""
    fields = _fields(t="x", n=3, ts=["a"], ns=[1, 2], m={"k": 1}, nothing=None)
    assert (fields.text("t"), fields.text("nothing", "d"), fields.identifier("t")) == ("x", "d", "x")
    assert (fields.count("n"), fields.count("nothing", 7)) == (3, 7)
    assert (fields.texts("ts"), fields.texts("nothing")) == (("a",), ())
    assert (fields.numbers("ns"), fields.numbers("nothing", (0, 0))) == ((1, 2), (0, 0))
    assert (fields.mapping("m"), fields.mapping("nothing")) == ({"k": 1}, {})
    assert fields.rest(frozenset({"t", "n", "ts", "ns", "m"})) == {"nothing": None}


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (lambda: _fields().text("a"), 's:3: field "a" is missing; a string'),
        (lambda: _fields(a=1).text("a"), 's:3: field "a" is 1; a string'),
        (lambda: _fields(a=" ").identifier("a"), 's:3: field "a" is blank'),
        (lambda: _fields(a=True).count("a"), 'field "a" is true; a whole number'),
        (lambda: _fields(a=1.5).count("a"), 'field "a" is 1.5'),
        (lambda: _fields(a=-1).count("a"), 'field "a" is -1; at least 0'),
        (lambda: _fields(a=["x", 1]).texts("a"), "a list of strings"),
        (lambda: _fields(a=[1, True]).numbers("a"), "a list of whole numbers"),
        (lambda: _fields(a=[]).mapping("a"), "an object"),
        (lambda: _fields().numbers("a"), "is missing"),
    ],
)
def test_fields_that_are_wrong(read: object, message: str) -> None:
    """A field that is missing or of another type is said by its name, with what is expected."""
    assert callable(read)
    with pytest.raises(InputError, match=message):
        read()


def test_long_values_are_cut_in_messages() -> None:
    """A value in a message has at most sixty characters."""
    assert shown("x" * 99) == '"' + "x" * 56 + "…"
    assert shown([1]) == "[1]"
