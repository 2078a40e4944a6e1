import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrag_cli.parts.blocks import Block, Markup, blocks, entries, plain, title, trimmed

TEXTS = st.lists(
    st.one_of(
        st.sampled_from(
            [
                "\n", "\n\n", "# ", "## ", "```\n", "\n```\n", "~~~\n", "| a | b |\n|---|---|\n| c | d |\n",
                "\n- ", "\n1. ", "Passage 1:\n", "---\n", "\n---\n", "\n===\n", "    code\n", "title: x\n",
                "word ", "One. ", "一句话。", "> ", "\u2028", "\r", "\u0301", "👨\u200d👩\u200d👧", "x" * 130,
            ]
        ),
        st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
    ),
    max_size=14,
).map("".join)  # fmt: skip


def _seen(text: str, markup: Markup = "markdown") -> list[tuple[str, str]]:
    return [(block.kind, text[block.start : block.end]) for block in blocks(text, markup)]


def _headings(text: str, markup: Markup = "markdown") -> list[tuple[int, str]]:
    return [(block.level, block.title) for block in blocks(text, markup) if block.kind == "heading"]


@given(TEXTS, st.sampled_from(["text", "markdown"]))
def test_every_character_is_in_one_block(text: str, markup: Markup) -> None:
    """Blocks ascend, do not overlap, are trimmed, and hold every character that is not white space."""
    before = 0
    for block in blocks(text, markup):
        assert before <= block.start < block.end
        assert not text[before : block.start].strip()
        assert text[block.start : block.end] == text[block.start : block.end].strip()
        assert (block.level > 0) == (block.kind == "heading")
        before = block.end
    assert not text[before:].strip()


def test_headings_with_hashes() -> None:
    """One to six hashes and a space make a heading; closing hashes and inline markup are not its words."""
    text = (
        "# Pump *X200* #\n## The `start` [command](c.md) {#start}\n####### seven\n#none\n"
        "   ### In\n    # out\n#"
    )
    assert _headings(text) == [(1, "Pump X200"), (2, "The start command"), (3, "In"), (1, "")]


def test_underlined_headings() -> None:
    """A single line above a row of = or - is a heading; a lone rule or a longer paragraph is none."""
    text = "Pump\n====\n\nStart\n---\ntext\n\none\ntwo\n---\n\n---\n\n- entry\n---\n"
    assert _headings(text) == [(1, "Pump"), (2, "Start")]
    assert _seen("Pump\n====\nmore")[0] == ("heading", "Pump\n====")


def test_code_is_whole_and_has_no_headings() -> None:
    """Fenced code is one block with its fences, whatever it holds; so is an indented block."""
    text = (
        "Run:\n```sh\n# no heading\n\nls\n~~~\n```\nend\n\n    # indented\n    ls\n\n"
        "1. step\n   ~~~~\n   # no\n   ~~~~\n"
    )
    assert _seen(text) == [
        ("prose", "Run:"),
        ("code", "```sh\n# no heading\n\nls\n~~~\n```"),
        ("prose", "end"),
        ("code", "# indented\n    ls"),
        ("prose", "1. step"),
        ("code", "~~~~\n   # no\n   ~~~~"),
    ]


def test_a_fence_that_nothing_closes() -> None:
    """Code that is never closed reaches to the end, and backticks within a line open none."""
    assert _seen("a ```b``` c\n\n```\n# x\n") == [("prose", "a ```b``` c"), ("code", "```\n# x")]


def test_tables() -> None:
    """A row with bars above a rule begins a table, which ends at the first line without one."""
    text = "Limits:\n| Model | bar |\n|:--|--:|\n| X | 6 |\nafter\n\na | b\n\n|---|\n"
    assert _seen(text) == [
        ("prose", "Limits:"),
        ("table", "| Model | bar |\n|:--|--:|\n| X | 6 |"),
        ("prose", "after"),
        ("prose", "a | b"),
        ("prose", "|---|"),
    ]


def _entries(text: str) -> list[str]:
    return [text[start:end] for start, end in entries(text, 0, len(text))]


def test_list_entries() -> None:
    """A list is one block, and its entries are parts of it, each with the lines that continue it."""
    text = "Tools:\n- a knife\n  that cuts\n- a lid\n10. ten\n• dot"
    assert _seen(text) == [("prose", text)]
    assert _entries(text) == ["Tools:", "- a knife\n  that cuts", "- a lid", "10. ten", "• dot"]


def test_wrapped_and_unwrapped_paragraphs() -> None:
    """Lines wrapped by hand are one paragraph; where a line is longer than that, each line is one."""
    assert _seen("wrapped by\nhand\n\nnext") == [("prose", "wrapped by\nhand"), ("prose", "next")]
    assert _entries("wrapped by\nhand") == ["wrapped by\nhand"]
    long = "w" * 121
    assert _entries(f"{long}\nshort\n\n{long}\n ") == [long, "short", long]


@given(TEXTS)
def test_entries_hold_everything(text: str) -> None:
    """The parts of a block are trimmed and hold every character that is not white space once."""
    assert "".join("".join(_entries(text)).split()) == "".join(text.split())
    assert all(part == part.strip() for part in _entries(text))


def test_plain_text_has_no_markdown() -> None:
    """In plain text a hash, a fence or a rule means nothing."""
    assert _headings("# comment\n\nTitle\n=====\n", "text") == []
    assert {kind for kind, _ in _seen("```\nx\n```\n\n    indented", "text")} == {"prose"}


@pytest.mark.parametrize("markup", ["text", "markdown"])
def test_announced_pages(markup: Markup) -> None:
    """``Passage N:`` and its title on the next line are a heading, and no document title."""
    text = "Passage 1:\nThe Lock\nIt was built.\n\nPassage 2:\n\nIn Passage 3: no\nPassage 4:\nThe Gate"
    assert _headings(text, markup) == [(1, "The Lock"), (1, "Passage 2"), (1, "The Gate")]
    assert title(text, blocks(text, markup)) is None


def test_titles() -> None:
    """A Markdown text's title is its front matter's, else its first heading of level 1, else none."""
    front = '---\nauthor: A\ntitle: "The Pump"\n---\n# Other\n'
    assert title(front, blocks(front, "markdown")) == "The Pump"
    assert _seen(front)[0] == ("code", front[: front.index("# ")].strip())
    for text, expected in (
        ("## Sub\n\n# Main *one*\n", "Main one"),
        ("text", None),
        ("---\n\n# A\n\n---\n", "A"),
    ):
        assert title(text, blocks(text, "markdown")) == expected


@pytest.mark.parametrize("indent", ["\t", "    "])
def test_an_indented_heading_is_code(indent: str) -> None:
    """A line that begins with a heading's mark behind an indentation is code, alone as in company."""
    assert _seen(f"{indent}# no heading") == [("code", "# no heading")]
    assert _seen(f"A.\n\n{indent}# no heading\n\n# One") == [
        ("prose", "A."),
        ("code", "# no heading"),
        ("heading", "# One"),
    ]


def test_a_very_long_line_is_no_heading() -> None:
    """A line of hundreds of characters is a paragraph, whatever it begins with."""
    assert next(blocks("# " + "w " * 300, "markdown")).kind == "prose"


def test_plain_keeps_what_is_no_markup() -> None:
    """Underscores and stars inside words and sums stay."""
    assert plain("snake_case_name 2 * 3 * 4  `x`") == "snake_case_name 2 * 3 * 4 x"


def test_trimmed_of_white_space_is_nothing() -> None:
    """A span of white space has no trimmed span."""
    assert list(trimmed(" a \u2028", 2, 4)) == []
    assert list(trimmed(" a \u2028", 0, 4)) == [(1, 2)]


@pytest.mark.parametrize(
    "text",
    [
        " " * 300_000,
        "`" * 300_000,
        "# [" * 100_000,
        "|-" * 150_000,
        "\n " * 100_000,
        "- " * 100_000,
        "~~~\n" * 20_000,
    ],
)
def test_hostile_texts_take_linear_time(text: str) -> None:
    """Long runs of marks are read in a moment."""
    assert all(isinstance(block, Block) for block in blocks(text, "markdown"))
