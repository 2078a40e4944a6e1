"""A document's lines as paragraphs under their titles, from units written out by hand."""

from __future__ import annotations

from itertools import pairwise

import pytest

from mrag_cli.parts.outline import Paragraph, Source, paragraphs, source_of, width
from mrag_cli.records.models import Document, Unit


def _units(text: str, *cuts: int, heading: tuple[str, ...] = ()) -> tuple[Unit, ...]:
    """Return ``text`` cut at offsets, each unit without the white space around it, as the tagger does."""
    edges = [0, *cuts, len(text)]
    found = []
    for start, end in pairwise(edges):
        piece = text[start:end]
        left = start + len(piece) - len(piece.lstrip())
        found.append(Unit("d", len(found) + 1, piece.strip(), 1, heading, (left, left + len(piece.strip()))))
    return tuple(found)


def _read(text: str, *, title: str = "d") -> tuple[Source, list[Paragraph]]:
    source = source_of(_units(text))
    return source, paragraphs(Document("d", "", title, 1, 1), source)


def test_source_is_the_text_again() -> None:
    """Units that touch are joined without a space, others with the space that the spans tell."""
    text = "桥在一九三二年开放。渡船被卖给博物馆。\n\nIt was sold in may\nand shown."
    source = source_of(_units(text, 10, text.index("It"), text.index("and")))
    assert source.text == "桥在一九三二年开放。渡船被卖给博物馆。\n\nIt was sold in may and shown."


def test_pointers_are_the_units_that_overlap() -> None:
    """A span points to each unit it shares a character with, and to no other."""
    source = source_of(_units("First one. Second one. Third.", 11, 23))
    assert source.pointers(0, 5) == (1,)
    assert source.pointers(6, 14) == (1, 2)
    assert source.pointers(0, len(source.text)) == (1, 2, 3)


def test_first_line_above_a_blank_one_is_the_title() -> None:
    """A document without a title has its first line, where it stands apart and looks like a title."""
    _, found = _read(
        "Ferries of the Lenne\n\nThe first ferry was founded by Anna Brack in the year of the flood."
    )
    assert [(paragraph.title, paragraph.path) for paragraph in found] == [("Ferries of the Lenne", ())]


def test_given_title_wins() -> None:
    """A title that the document has is not looked for in its text."""
    _, found = _read(
        "Early years\nThe first ferry was founded by Anna Brack in the year of the flood.", title="Boats"
    )
    assert [(paragraph.title, paragraph.path) for paragraph in found] == [("Boats", ("Early years",))]


def test_marked_headings_make_a_path() -> None:
    """Headings with marks nest by level, and a sibling replaces the one before it."""
    source, found = _read("# Boats\ntext one\n## Ferries\ntext two\n# Bridges\ntext three")
    assert [(source.text[p.start : p.end], p.path) for p in found] == [
        ("text one", ("Boats",)),
        ("text two", ("Boats", "Ferries")),
        ("text three", ("Bridges",)),
    ]


def test_heading_with_nothing_under_it_is_a_paragraph() -> None:
    """A heading that another of its level follows at once is kept as text."""
    source, found = _read("# Boats\n# Bridges\ntext")
    assert [source.text[p.start : p.end] for p in found] == ["# Boats", "text"]


def test_lead_reaches_back_to_the_headings() -> None:
    """The first paragraph under headings leads with them; the next one with itself."""
    source, found = _read("# Boats\ntext one\n\ntext two")
    assert source.text[found[0].lead :].startswith("# Boats")
    assert found[1].lead == found[1].start


def test_page_numbers_announce_no_page() -> None:
    """A page's number alone is text; only an announcement with its colon begins a page."""
    _, found = _read("Page 3\nThe first ferry was founded by Anna Brack in the year of the flood.")
    assert {paragraph.title for paragraph in found} == {""}


@pytest.mark.parametrize(("text", "wide"), [("two words", 4), ("两个字", 3), ("第 3 章", 4), ("", 0)])
def test_width_counts_words_and_characters(text: str, wide: int) -> None:
    """A CJK character is 1 wide and any other word 2."""
    assert width(text) == wide
