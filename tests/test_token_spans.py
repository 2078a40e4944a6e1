import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrag_cli.parts.token_spans import TokenSpans
from mrag_cli.parts.tokens import boundaries, count, tokens_before

_TEXT = st.text(
    st.one_of(
        st.sampled_from(list("aBé字 .!'\"\n\t\r,，。12½²ſ\u2028\u0301😀-_")),
        st.characters(exclude_categories=["Cs"]),
    ),
    max_size=60,
)


@given(_TEXT, st.integers(0, 60), st.integers(0, 60))
def test_a_part_has_the_tokens_it_has_alone(text: str, first: int, second: int) -> None:
    """The count of any span is what encoding that span by itself gives."""
    start, end = sorted((min(first, len(text)), min(second, len(text))))
    assert TokenSpans(text).exact(start, end) == count(text[start:end])


@pytest.mark.parametrize("end", ["’s", "'ll stay", " 3.5%", "。他", "…", "\n\n", "  x"])
def test_a_long_part_has_the_tokens_it_has_alone(end: str) -> None:
    """So is the count of a long span, most of which is read off the whole text's tokens."""
    text = (
        "The pump moves forty litres a minute, and it's quiet. 水泵的流量为每分钟四十升，很安静。" * 9
    ) + end
    spans = TokenSpans(text)
    for start in range(0, 200, 7):
        for stop in range(len(text) - 40, len(text) + 1):
            assert spans.exact(start, stop) == count(text[start:stop])


@given(_TEXT)
def test_tokens_before_agree_with_the_tokens_starts(text: str) -> None:
    """The counts rise from none to all, each where a token ends."""
    before = tokens_before(text)
    starts = boundaries(text)
    assert (len(before), before[-1]) == (len(text) + 1, count(text))
    assert list(before) == sorted(before)
    spans = TokenSpans(text)
    ends = [spans.token_end(token) for token in range(len(starts))]
    assert all(start < end for start, end in zip(starts, ends, strict=True))
    assert list(before) == [sum(end <= offset for end in ends) for offset in range(len(text) + 1)]


def test_before_counts_whole_tokens() -> None:
    """Tokens that end at or before an offset are before it; past the last token is the text's end."""
    spans = TokenSpans("one two three")
    assert [spans.before(offset) for offset in (0, 2, 3, 6, 7, 13)] == [0, 0, 1, 1, 2, 3]
    assert [spans.token_end(token) for token in (0, 1, 2, 3)] == [3, 7, 13, 13]
    assert (spans.total, TokenSpans("").total) == (3, 0)
