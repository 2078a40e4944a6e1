from hypothesis import given
from hypothesis import strategies as st

from mrag_cli.parts.chop.outline import PLAIN_LEVEL, Sections, headings


def test_marked_headings_are_taken_as_they_are() -> None:
    """Levels and titles come from the marks; short lines between them are no headings."""
    text = "# Orla X10\n\nShort line\n\n## Filter\n\nClean it.\n"
    assert [(found.level, found.title) for found in headings(text)] == [(1, "Orla X10"), (2, "Filter")]


def test_without_marks_lines_that_look_like_headings_count() -> None:
    """Short lines that start like a title and end like none are headings of a plain text."""
    text = "Orla X10 user manual\nFilter\nClean the filter once a week.\nlower case\nTank:\n"
    found = headings(text)
    assert [heading.title for heading in found] == ["Orla X10 user manual", "Filter"]
    assert {heading.level for heading in found} == {PLAIN_LEVEL}
    assert all(text.startswith(heading.title, heading.start) for heading in found)


def test_a_long_stretch_without_marks_is_read_as_plain() -> None:
    """A plain document run together with a marked one has headings too."""
    plain = "Tank\n" + "Fill it with fresh water every morning.\n" * 800
    assert "Tank" in [heading.title for heading in headings("# Marked\n\nText.\n\n" + plain)]


def test_the_path_above_a_place() -> None:
    """Headings stand above what follows them, a heading that begins right there included."""
    text = "# A\n\none\n\n## B\n\ntwo\n\n# C\n\nthree\n"
    above = Sections(headings(text))
    assert above.above(text.index("one")) == ("A",)
    assert above.above(text.index("## B")) == ("A", "B")
    assert above.above(text.index("three")) == ("C",)
    assert Sections([]).above(0) == ()


@given(st.text(alphabet="# aB1\n.", max_size=120))
def test_headings_ascend(text: str) -> None:
    """Headings come in order, each once."""
    starts = [heading.start for heading in headings(text)]
    assert starts == sorted(set(starts))
