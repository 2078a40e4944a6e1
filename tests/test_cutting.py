import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from mrag_cli.parts.blocks import Markup, blocks
from mrag_cli.parts.cutting import Cut, fixed_cuts, paragraph_cuts
from mrag_cli.parts.token_spans import TokenSpans
from mrag_cli.parts.tokens import count

_TEXT = st.lists(
    st.one_of(
        st.sampled_from(
            [
                "\n", "\n\n", "# ", "\n## Head\n", "```\n", "\n```\n", "| a | b |\n|---|---|\n| c | d |\n",
                "\n- ", "Passage 1:\n", "\n===\n", "    code\n", "word ", "One two three. ", "一句话。", "，",
                "\u2028", "\r", "e\u0301\u0301", "👨\u200d👩\u200d👧", "🇫🇷", "x" * 30, " ", "\u00a0", "”",
            ]
        ),
        st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
    ),
    max_size=20,
).map("".join)  # fmt: skip


def _paragraphs(text: str, limit: int, markup: Markup = "markdown") -> list[Cut]:
    return list(paragraph_cuts(text, blocks(text, markup), limit, TokenSpans(text)))


def _texts(text: str, limit: int) -> list[str]:
    return [text[cut.start : cut.end] for cut in _paragraphs(text, limit)]


def _check(text: str, cuts: list[Cut], limit: int) -> None:
    before = 0
    for cut in cuts:
        assert before <= cut.start < cut.end <= len(text)
        assert not text[before : cut.start].strip()
        words = text[cut.start : cut.end]
        assert cut.tokens == count(words)
        assert cut.tokens <= limit or len(regex.findall(r"\X", words)) == 1
        before = cut.end
    assert not text[before:].strip()


@given(_TEXT, st.sampled_from(["text", "markdown"]), st.sampled_from([1, 2, 3, 5, 8, 16, 40]))
def test_paragraph_units_hold_everything_once(text: str, markup: Markup, limit: int) -> None:
    """Units ascend, do not overlap, hold every character but white space, and have at most so many tokens."""
    _check(text, _paragraphs(text, limit, markup), limit)


@given(_TEXT, st.sampled_from([1, 2, 3, 5, 8, 16, 40]))
def test_fixed_units_hold_everything_once(text: str, limit: int) -> None:
    """The same holds for strict windows."""
    _check(text, list(fixed_cuts(text, limit, TokenSpans(text))), limit)


def test_fixed_units_are_full() -> None:
    """Every window but the last has exactly the tokens asked for, and windows touch."""
    text = "The keeper of the lock notes the pressure, and nobody else does. " * 40
    cuts = list(fixed_cuts(text, 16, TokenSpans(text)))
    assert {cut.tokens for cut in cuts[:-1]} == {16}
    assert [cut.end for cut in cuts[:-1]] == [cut.start for cut in cuts[1:]]


def test_paragraphs_are_packed_whole() -> None:
    """Paragraphs share a unit while they fit; one that does not begins the next."""
    short, long = "A short one.", "This paragraph has quite a few more words than the others do."
    assert _texts(f"{short}\n\n{short}\n\n{long}\n\n{short}", 18) == [
        f"{short}\n\n{short}",
        f"{long}\n\n{short}",
    ]


def test_sentences_are_not_cut() -> None:
    """A paragraph that is too long is cut between sentences."""
    text = "The first sentence stands here. The second one follows it. The third one ends the text."
    assert _texts(text, 13) == [
        "The first sentence stands here. The second one follows it.",
        "The third one ends the text.",
    ]


def test_lists_are_cut_between_entries() -> None:
    """A list stays whole where it fits, and is cut between its entries where it does not."""
    text = "- Open the lid. Look in.\n- Press the button. Wait.\n- Close the lid. Go on."
    assert _texts(f"Now do this:\n\n{text}", count(text)) == ["Now do this:", text]
    assert _texts(text, 18) == [
        "- Open the lid. Look in.\n- Press the button. Wait.",
        "- Close the lid. Go on.",
    ]


def test_a_long_sentence_is_cut_at_commas_then_at_words() -> None:
    """A sentence longer than a unit is cut at its commas, and a clause that is too long between words."""
    assert _texts("one two three, four five six, seven eight nine.", 8) == [
        "one two three, four five six,",
        "seven eight nine.",
    ]
    assert _texts("one two three four five", 2) == ["one two", "three four", "five"]
    assert _texts("打开盖子，放入滤芯，关闭盖子", 14)[0].endswith("，")


def test_a_unit_never_crosses_a_heading() -> None:
    """Each section has its own units, which know the headings above them, and hold the last of these."""
    text = "Intro.\n\n# Pump\n\n## Start\n\nOpen it.\n\n## Stop\n\nClose it.\n\n# End\n"
    cuts = _paragraphs(text, 64)
    assert [(text[cut.start : cut.end], cut.heading) for cut in cuts] == [
        ("Intro.", ()),
        ("# Pump\n\n## Start\n\nOpen it.", ("Pump", "Start")),
        ("## Stop\n\nClose it.", ("Pump", "Stop")),
        ("# End", ("End",)),
    ]


def test_a_heading_keeps_company() -> None:
    """Where a paragraph is too long for a unit with its heading, its first sentences join the heading."""
    text = (
        "## Start of the pump\n\nOpen the lid of it. Then press the green button twice. Wait for the light."
    )
    assert _texts(text, 16) == [
        "## Start of the pump\n\nOpen the lid of it.",
        "Then press the green button twice. Wait for the light.",
    ]
    assert _texts("# A heading of six words\n\nOne sentence that fills the unit.", 8) == [
        "# A heading of six words",
        "One sentence that fills the unit.",
    ]


def test_tables_and_code_are_cut_between_lines() -> None:
    """Code and tables stay whole where they fit; where they do not, whole lines stay together."""
    code = "```\nfirst = 1\nsecond = 2\nthird = 3\n```"
    together = f"Text.\n\n{code}"
    assert _texts(together, count(together) - 1) == ["Text.", code]
    for part in _texts(code, 12):
        assert all(line in code.split("\n") for line in part.split("\n"))
    rows = "| a | b |\n|---|---|\n| one | two |\n| three | four |"
    assert "".join(_texts(rows, 12)).count("| three | four |") == 1


@pytest.mark.parametrize(
    "text", ["x" * 40_000, "字" * 20_000, "1" * 40_000, "a1" * 20_000, "👨\u200d👩" * 3_000]
)
def test_text_without_spaces(text: str) -> None:
    """A text of one endless word is cut between characters in a moment."""
    cuts = _paragraphs(text, 128)
    _check(text, cuts, 128)
    assert all(cut.tokens > 100 for cut in cuts[:-1])
