from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from manuals import manual

from mrag_cli.parts.chop.boundaries import segments
from mrag_cli.parts.chop.domains import DOMAINS
from mrag_cli.parts.chop.families import mentions
from mrag_cli.parts.chop.outline import headings

PRODUCTS = ["Orla Brew X10", "Orla Brew X20", "Orla Brew X30"]


def starts(text: str, domain: str = "product") -> list[int]:
    """Return where the segments of a text begin."""
    return [found.start for found in segments(text, headings(text), DOMAINS[domain], mentions(text))]


@pytest.mark.parametrize("marks", [True, False])
@pytest.mark.parametrize("title", ["user manual", ""])
def test_manuals_run_together_are_told_apart(title: str, *, marks: bool) -> None:
    """Siblings are cut where each begins, with and without title lines and heading marks."""
    pieces = [manual(product, title=title, marks=marks) for product in PRODUCTS]
    found = starts("\n".join(pieces))
    expected = [0, len(pieces[0]) + 1, len(pieces[0]) + len(pieces[1]) + 2]
    assert found == expected


def test_a_single_manual_has_no_break() -> None:
    """A manual's own headings, a mention of its manual among them, cut nothing."""
    text = manual("Orla Brew X10").replace("## Lamp", "## User manual\nView the user manual.\n\n## Lamp")
    assert starts(text) == [0]


def test_a_title_over_two_lines_cuts() -> None:
    """A product's name and the words for a manual on the next line are a title together."""
    second = "# Orla Brew X20\n\n## Owner's Manual\n\n" + manual("", title="")
    found = segments(
        text := manual("Orla Brew X10") + "\n" + second, headings(text), DOMAINS["product"], mentions(text)
    )
    assert [segment.title.name for segment in found if segment.title] == ["Orla Brew X10", "Orla Brew X20"]


def test_statutes_are_told_apart() -> None:
    """In the legal domain a statute's title cuts; one that only refers to an act does not."""
    act = "# {}\n\n## Preamble\n\n" + "The council shall keep the harbour open at all times.\n\n" * 60
    act += "## Offences under this Act\n\nNobody shall moor at night.\n\n"
    text = act.format("Harbour Act 2031") + act.format("Ferry Act 2032")
    assert starts(text, "legal") == [0, text.index("# Ferry")]


@given(st.text(alphabet="# Ab1\n.", max_size=200))
def test_segments_cover_any_text(text: str) -> None:
    """Segments touch, begin at 0 and end with the text."""
    found = segments(text, headings(text), DOMAINS["product"], mentions(text))
    assert found[0].start == 0
    assert found[-1].end == len(text)
    assert all(one.end == two.start for one, two in pairwise(found))
