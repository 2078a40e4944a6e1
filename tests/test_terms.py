import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mrag_cli.parts.terms import STOP_WORDS, query_terms, terms

_ASCII = st.text(
    st.one_of(st.sampled_from(list("aAsS '.-1_\n\t\0")), st.characters(max_codepoint=127)), max_size=40
)
_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


@given(_ASCII)
@example("it's a dog's life, James's 3's 's x's1")
@example("rock 'n' roll_on v2.0")
def test_both_paths_give_the_same(text: str) -> None:
    """ASCII text has the same terms whether or not something else stands behind it."""
    assert terms(f"{text} é") == [*terms(text), "é"]


@given(_TEXT, _TEXT)
def test_a_line_end_separates(first: str, second: str) -> None:
    """The terms of two lines are those of the first and those of the second."""
    if second[:1] and unicodedata.category(second[0])[0] == "M":
        return
    assert terms(f"{first}\n{second}") == terms(first) + terms(second)


@given(_TEXT)
def test_composition_does_not_matter(text: str) -> None:
    """Composed and decomposed text have the same terms, and none is blank."""
    found = terms(text)
    assert terms(unicodedata.normalize("NFD", text)) == terms(unicodedata.normalize("NFC", text)) == found
    assert all(term.strip() for term in found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The pumps were running.", ["the", "pump", "were", "run"]),
        ("Dogs' dog's DOG’S", ["dog", "dog", "dog"]),
        ("CAFÉ café", ["café", "café"]),
        ("Straße STRASSE", ["strass", "strass"]),
        ("ﬁne ①", ["fine", "1"]),
        ("水泵", ["水泵"]),
        ("水泵流量", ["水泵", "泵流", "流量"]),
        ("水", ["水"]),
        ("Wi-Fi6水泵A", ["wi", "fi6", "水泵", "a"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("a b 1 x", ["a", "b", "1", "x"]),
        ("snake_case", ["snake", "case"]),
        ("3.5 v2", ["3", "5", "v2"]),
        ("", []),
        ("!? —", []),
    ],
)
def test_terms(text: str, expected: list[str]) -> None:
    """Words are folded and stemmed, Chinese becomes pairs, and single characters are kept."""
    assert terms(text) == expected


def test_query_terms_leave_stop_words_out() -> None:
    """A question is ranked without stop words, unless it has nothing else."""
    assert query_terms("What is the flow of the pump?") == ["flow", "pump"]
    assert query_terms("What is it?") == ["what", "is", "it"]
    assert query_terms("") == []
    assert "what" in STOP_WORDS
