import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mrag_cli.parts.sentences import sentences

_TEXT = st.text(
    st.one_of(
        st.sampled_from(list("aB .!?\n\t'\"()“”」。！？1:;•\u2028\u2029\u0085\u00a0\u0301😀\u200d[]-…")),
        st.characters(exclude_categories=["Cs"]),
    ),
    max_size=60,
)


def _split(text: str) -> list[str]:
    return [text[start:end] for start, end in sentences(text)]


@pytest.mark.parametrize(
    "expected",
    [
        ["Dr. Stone met Mrs. Hill at 5 p.m. on Friday.", "They talked for two hours."],
        ["The share fell by 3.5 percent in Jan. 2021.", "It rose again in March."],
        ['She said, "I will stay."', "Then she left."],
        ["The U.S. team won.", "The U.K. team did not."],
        ["A. B. Carter wrote the report.", "It was printed in 1937."],
        ["See Fig. 3 for the wiring.", "All runs used v2.0.1 of the tool."],
        ["Rates were high (Table 2) .", "They fell later."],
        ["Infections with Eimeria spp. were rare.", "Others were not."],
        ["It doubled (Moor et al., 2011) within a year.", "Nobody knew why."],
        ["What happened?", "Nobody knows!", "The log is empty…"],
        ["The dose was approx. 200 units.", "No one noticed."],
    ],
)
def test_english_sentences(expected: list[str]) -> None:
    """English sentences end at their last mark, not at abbreviations, initials, decimals or references."""
    assert _split(" ".join(expected)) == expected


@pytest.mark.parametrize(
    "expected",
    [
        ["他昨天去了上海。", "天气很好！", "你觉得怎么样？"],
        ["她说：“我明天来。”", "然后就走了。"],
        ["价格为199.99元。", "『没有人知道。』", "他走了。"],
        ["今日は天気がいい。", "散歩に行きましょう！"],
        ["这是真的吗？！", "不是。"],
    ],
)
def test_chinese_and_japanese_sentences(expected: list[str]) -> None:
    """Chinese and Japanese sentences end at their own marks, closing quotes included, without spaces."""
    assert _split("".join(expected)) == expected


def test_a_list_number_stays_with_its_entry() -> None:
    """The number of a list's entry is no sentence of its own."""
    assert _split("1. Open the lid.\n2. Insert the cell.") == ["1. Open the lid.", "2. Insert the cell."]


def test_a_wrapped_line_is_one_sentence() -> None:
    """A line break inside a sentence does not end it, a blank line does."""
    assert _split("The lid is\nheavy. Mind it.\n\nA heading\n\nMore") == [
        "The lid is\nheavy.",
        "Mind it.",
        "A heading",
        "More",
    ]


@given(_TEXT)
@example("“" * 7000)
@example("“！')1 a。”) b")
@example("Aa.\u2028.b 3.\u2028C. D")
@example("word " * 4000 + "。" * 9000)
def test_every_character_is_in_one_sentence(text: str) -> None:
    """Spans ascend, do not overlap, are trimmed, and hold every character that is not white space."""
    spans = sentences(text)
    end_before = 0
    for start, end in spans:
        assert end_before <= start < end <= len(text)
        assert not text[end_before:start].strip()
        assert text[start:end].strip() == text[start:end]
        end_before = end
    assert not text[end_before:].strip()
