import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrag_cli.parts.grounding import Evidence
from mrag_cli.records.models import Document, DocumentGroup, Unit

_TEXTS = (
    "The iron bridge at Hale was opened on 4 March 1871 by Eleanor Marsh. It bears 1,250 tonnes on spans.",
    "In 1902 the Hale Canal Company widened the lock. Of 48 barges, twenty-five were wooden.",
    "哈尔铁桥建于１８７１年3月4日，由马建民主持，全长三百二十米。《哈尔桥史》有记载。",
)


def _evidence(texts: tuple[str, ...] = _TEXTS, title: str = "Bridges of Kestrel County") -> Evidence:
    units = tuple(Unit("d", number, text, 20, ("Guide", "Lock 7")) for number, text in enumerate(texts, 1))
    return Evidence(DocumentGroup(Document("d", "", title, len(units), 60), units))


@pytest.mark.parametrize(
    "value",
    [
        "The Hale bridge was opened on March 4, 1871 and bears 1250 tonnes.",
        "Twenty-five of forty-eight barges of the Hale Canal Company were wooden.",
        "Eleanor Marsh opened Lock 7 in Kestrel County, on 1871-03-04.",
        "The bridge is 320 metres long.",
        "Three things are said about it: nothing else was counted.",
        "马建民于1871年3月4日建成铁桥，长320米，见《哈尔桥史》。",
    ],
)
def test_a_faithful_value_raises_no_alarm(value: str) -> None:
    """Paraphrase, other spellings, headings, the title and other units are all evidence."""
    assert _evidence().not_found(value, (1,)) == ()


@pytest.mark.parametrize(
    ("value", "claim"),
    [
        ("The bridge was opened on 5 March 1871.", "5 March 1871"),
        ("It carries 1,520 tonnes.", "1,520"),
        ("It was opened by Eleanor Marchbanks.", "Marchbanks"),
        ("Thirty-one barges were wooden.", "thirty-one"),
        ("铁桥建于1872年3月4日。", "1872年3月4日"),
        ("铁桥由赵国栋主持。", "赵国栋"),
        ("全长三百五十米。", "三百五十"),
    ],
)
def test_a_false_claim_is_named(value: str, claim: str) -> None:
    """The number, date or name that the document does not have is returned."""
    assert claim in _evidence().not_found(value, (1,))


def test_a_document_without_units_cannot_be_asked() -> None:
    """Where the units' text is not in the stream, nothing is claimed about a value."""
    evidence = Evidence(DocumentGroup(Document("d", "", "d", 2, 0)))
    assert evidence.not_found("Opened in 1999 by Nobody Known", (1,)) == ()


@given(st.data())
def test_words_of_the_source_are_grounded(data: st.DataObject) -> None:
    """A value cut anywhere from its units, even within a number, raises no alarm."""
    pointers = data.draw(st.sampled_from([(1,), (2,), (1, 2), (2, 3), (1, 2, 3)]))
    source = "\n".join(_TEXTS[pointer - 1] for pointer in pointers)
    start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(source))] * 2)))
    assert _evidence().not_found(source[start:end], pointers) == ()


@given(st.text(max_size=60), st.text(max_size=60))
def test_no_text_is_too_strange(text: str, value: str) -> None:
    """Any text is checked without an error, and itself is grounded in itself."""
    _evidence((text,), "t").not_found(value, (1,))
    assert _evidence((text,), "t").not_found(text, (1,)) == ()


def test_nearly_all_swapped_numbers_are_caught() -> None:
    """Of numbers replaced by others that the document does not have, at least 95 % are reported."""
    chance = random.Random(3)  # noqa: S311 - the same sample each time, no secret
    evidence = _evidence()
    caught = 0
    for _ in range(200):
        value = re.sub(r"1,250", str(chance.randrange(2000, 90000)), _TEXTS[0])
        caught += bool(evidence.not_found(value, (1,)))
    assert caught >= 190
