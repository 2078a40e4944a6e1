import string

from hypothesis import example, given
from hypothesis import strategies as st

from mrag_cli.parts.costs import costs, header_cost, tokens_of
from mrag_cli.parts.tokens import SEPARATOR, count

ASCII = st.text(st.characters(max_codepoint=127), max_size=60)
ANY = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
TRICKY = st.lists(
    st.sampled_from(
        [*string.whitespace, "\x1c", "'s", "'LL", "it", "'", "1234", "...", "。", "”", "码", "é", "a", "#"]
    )
).map("".join)


@given(ASCII | TRICKY)
@example("a\x1c b \x1d\n\n")
@example("don't  \n\n  '  x'sn 12345 \r\n")
@example("  ")
def test_tokens_are_the_encodings_own(text: str) -> None:
    """A text has as many tokens as the encoding finds in it."""
    assert tokens_of(text) == count(text)


@given(st.lists(ANY | TRICKY, max_size=3))
def test_costs_are_what_counting_gives(texts: list[str]) -> None:
    """The cost of a text is the number of tokens of the text and a separator."""
    assert costs(texts) == ([count(text) for text in texts], [count(text + SEPARATOR) for text in texts])


@given(ANY)
def test_a_header_costs_its_line(header: str) -> None:
    """A header costs the tokens of its line, no header nothing."""
    assert header_cost(header) == (count(f"{header}\n") if header else 0)


def test_many_pieces_are_forgotten() -> None:
    """Counting stays right, and memory bounded, over more words than are remembered."""
    text = " ".join(f"w{number}" for number in range(1000))
    assert tokens_of(text) == count(text)
    assert tokens_of("x" * 1000) == count("x" * 1000)
