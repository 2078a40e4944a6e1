"""The headings of a text: the marked ones, and where it has none lines that look like headings."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise

from mrag_cli.parts.blocks import blocks

_ENDS_A_SENTENCE = re.compile(r"[.,;:!?。，；：！？…]$")
PLAIN_LEVEL = 2
"""The level of a line that only looks like a heading."""

# Where no heading is marked for this long, the text is read as plain.
_UNMARKED_STRETCH = 20_000
_MOST_WORDS = 12
_MOST_CHARACTERS = 90


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading.

    Attributes:
        start: where it begins, in code points.
        level: 1 (outermost) to 6; `PLAIN_LEVEL` for a line that only looks like one.
        title: its words.
    """

    start: int
    level: int
    title: str


def headings(text: str) -> list[Heading]:
    """Return the headings of ``text`` in order.

    In a stretch of 20,000 code points without a marked heading, or a whole text without one, short lines that
    start like a title and do not end like a sentence are taken for headings.
    """
    marked = [
        Heading(block.start, block.level, block.title) for block in blocks(text, "markdown") if block.title
    ]
    bounds = [0, *(heading.start for heading in marked), len(text)]
    found = list(marked)
    for start, end in pairwise(bounds):
        if end - start >= _UNMARKED_STRETCH or not marked:
            found += _plain(text, start, end)
    # A marked heading's own line is no second one.
    unique = {heading.start: heading for heading in reversed(found)}
    return [unique[start] for start in sorted(unique)]


def _plain(text: str, start: int, end: int) -> list[Heading]:
    found = []
    while start < end:
        stop = text.find("\n", start)
        stop = len(text) if stop < 0 else stop
        line = text[start : min(stop, start + 2 * _MOST_CHARACTERS)].strip()
        if line and _looks_like_heading(line):
            found.append(Heading(start, PLAIN_LEVEL, line))
        start = stop + 1
    return found


def _looks_like_heading(line: str) -> bool:
    if len(line) > _MOST_CHARACTERS or _ENDS_A_SENTENCE.search(line) or len(line.split()) > _MOST_WORDS:
        return False
    first = line[0]
    starts = first.isupper() or first.isdigit() or (first.isalpha() and not first.islower())
    return starts and any(character.isalpha() for character in line)


class Sections:
    """The path of headings above any place of a text.

    Args:
        outline: the text's headings, in order.
    """

    __slots__ = ("_paths", "_starts")

    def __init__(self, outline: list[Heading]) -> None:
        self._starts = [heading.start for heading in outline]
        self._paths: list[tuple[str, ...]] = []
        path: list[Heading] = []
        for heading in outline:
            while path and path[-1].level >= heading.level:
                path.pop()
            path.append(heading)
            self._paths.append(tuple(entry.title for entry in path))

    def above(self, place: int) -> tuple[str, ...]:
        """Return the titles above ``place``, outermost first, a heading that begins right there included."""
        at = bisect_right(self._starts, place)
        return self._paths[at - 1] if at else ()
