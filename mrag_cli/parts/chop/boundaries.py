"""Where one document ends and the next begins, in a text of several run together. No model is asked.

A text is scored at its headings of the first two levels; 3 points make a break. Lexical cohesion alone
finds next to nothing between manuals of one maker, so the points come from what manuals do at their ends:
a title line, front matter after back matter, headings that start over, another model's name.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING

from mrag_cli.parts.chop.titles import Title, is_kind, is_name, names_model, title_of
from mrag_cli.parts.terms import terms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mrag_cli.parts.chop.domains import Domain
    from mrag_cli.parts.chop.families import Mention
    from mrag_cli.parts.chop.outline import Heading

NEEDED = 3.0
"""The score that makes a break."""

_TITLE = 3.0
_FRONT = 1.5
_BACK = 1.5
_STARTS_OVER = 1.5
_NAMED = 1.5
_DROP = 1.0
_DEEP_DROP = 1.5
_NEW_MODEL = 0.5
_LEAST_GAP = 2_000
_RIVALS = 2_500
_MODEL_REACH = 2_000
_BACK_REACH = 3_000
_COHESION = 3_000
_DROP_Z = -1.0
_DEEP_DROP_Z = -4.0
_NEXT_HEADINGS = 15
_LEAST_SAMPLE = 5
_COPYRIGHT = re.compile(r"©|\(c\)\s*(?:19|20)\d\d|copyright|all rights reserved|版权所有", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Segment:
    """One of the documents run together.

    Attributes:
        start: where it begins, in code points.
        end: where the next one begins.
        title: what its title line names, or None without a title line.
        score: the points of the break before it; 0 for the first.
    """

    start: int
    end: int
    title: Title | None
    score: float


def segments(
    text: str, outline: list[Heading], domain: Domain, mentions: Sequence[Mention] = ()
) -> list[Segment]:
    """Return the documents of which ``text`` is made, in order; together they cover it.

    Args:
        text: one or several documents run together.
        outline: its headings.
        domain: the trade's words.
        mentions: the model names in ``text``, in order.
    """
    scorer = _Scorer(text, outline, domain, mentions)
    starts: list[tuple[int, float, Title | None]] = [(0, 0.0, scorer.opening_title())]
    opening = len(text) - len(text.lstrip())
    first = 0
    for at, heading in enumerate(outline):
        if heading.level > 2 or heading.start <= opening:
            continue
        title = scorer.titles.get(at)
        if heading.start - starts[-1][0] < (_LEAST_GAP if title is None else 1):
            continue
        score = scorer.score(at, first)
        if score < NEEDED or scorer.beaten(at, first, score):
            continue
        starts.append((heading.start, score, title))
        first = at
    ends = [start for start, _, _ in starts[1:]] + [len(text)]
    return [
        Segment(start, end, title, score) for (start, score, title), end in zip(starts, ends, strict=True)
    ]


class _Scorer:
    """The points of a text's headings."""

    __slots__ = ("_cohesion", "_domain", "_mentions", "_names", "_outline", "_places", "_text", "titles")

    def __init__(
        self, text: str, outline: list[Heading], domain: Domain, mentions: Sequence[Mention]
    ) -> None:
        self._text = text
        self._outline = outline
        self._domain = domain
        self._mentions = mentions
        self._names = [" ".join(heading.title.casefold().split()) for heading in outline]
        self._places: dict[str, list[int]] = {}
        for at, name in enumerate(self._names):
            self._places.setdefault(name, []).append(at)
        self._cohesion = _Cohesion(text)
        self.titles = self._find_titles()

    def _find_titles(self) -> dict[int, Title]:
        found: dict[int, Title] = {}
        for at, heading in enumerate(self._outline):
            if heading.level > 2:
                continue
            title = title_of(heading.title, self._domain)
            if (
                title is None
                and at + 1 < len(self._outline)
                and is_kind(self._outline[at + 1].title, self._domain)
            ):
                below = self._outline[at + 1]
                line_end = self._text.find("\n", heading.start)
                if is_name(heading.title, self._domain) and not self._text[line_end : below.start].strip():
                    title = Title(heading.title, below.title)
            if title is not None:
                found[at] = title
        return found

    def opening_title(self) -> Title | None:
        """Return what the first lines name, if one of the first three headings there is a title line."""
        return next(
            (self.titles[at] for at in range(3) if at in self.titles and self._outline[at].start < 600), None
        )

    def score(self, at: int, first: int) -> float:
        """Return the points of heading ``at`` in a segment whose first heading is ``first``."""
        heading = self._outline[at]
        points = _TITLE if at in self.titles else 0.0
        if not points and heading.level == 1 and names_model(heading.title, self._domain):
            points = _NAMED
        opens = bool(self._domain.front.match(heading.title))
        points += _FRONT if opens else 0
        if self._after_back_matter(at, first):
            points += _BACK
        if self._starts_over(at, first):
            points += _STARTS_OVER
        if self._new_model(at, first):
            points += _NEW_MODEL
        # Whatever the words around do, they cannot tip what is this far from the mark.
        if NEEDED - _DEEP_DROP <= points < NEEDED + _DEEP_DROP:
            depth = self._cohesion.depth(heading.start)
            deep = opens and depth < _DEEP_DROP_Z
            points += _DEEP_DROP if deep else _DROP if depth < _DROP_Z else 0
        return points

    def beaten(self, at: int, first: int, score: float) -> bool:
        """Tell whether a later heading within 2,500 code points scores higher."""
        start = self._outline[at].start
        for rival in range(at + 1, len(self._outline)):
            heading = self._outline[rival]
            if heading.start - start > _RIVALS:
                return False
            if heading.level <= 2 and self.score(rival, first) > score:
                return True
        return False

    def _after_back_matter(self, at: int, first: int) -> bool:
        start = self._outline[at].start
        before = self._text[max(0, start - _BACK_REACH) : start]
        if _COPYRIGHT.search(before):
            return True
        # The heading of level 1 or 2 that closes the segment so far, or any within reach.
        for earlier in range(at - 1, first, -1):
            heading = self._outline[earlier]
            if self._domain.back.match(heading.title):
                return True
            if start - heading.start > _BACK_REACH and heading.level <= 2:
                return False
        return False

    def _starts_over(self, at: int, first: int) -> bool:
        upcoming = self._names[at : at + _NEXT_HEADINGS]
        again = [self._stands_within(name, first, at - _NEXT_HEADINGS) for name in upcoming]
        return sum(again[:3]) >= 2 and sum(again) * 2 >= len(upcoming)

    def _stands_within(self, name: str, first: int, end: int) -> bool:
        places = self._places[name]
        at = bisect_left(places, first)
        return at < len(places) and places[at] < end

    def _new_model(self, at: int, first: int) -> bool:
        start, began = self._outline[at].start, self._outline[first].start
        ahead = {mention.id for mention in self._mentions if start <= mention.start < start + _MODEL_REACH}
        if not ahead:
            return False
        behind = {mention.id for mention in self._mentions if began <= mention.start < start}
        return not ahead <= behind


class _Cohesion:
    """Cosine similarity of the term frequencies on the two sides of a place, against the text's usual."""

    __slots__ = ("_text", "_usual")

    def __init__(self, text: str) -> None:
        self._text = text
        self._usual: tuple[float, float] | None = None

    def depth(self, place: int) -> float:
        """Return by how many deviations the similarity at ``place`` is off the mean; 0 in a short text."""
        if self._usual is None:
            step = max(_COHESION, len(self._text) // 200)
            sample = [self._at(spot) for spot in range(_COHESION, len(self._text) - _COHESION, step)]
            mean = sum(sample) / max(len(sample), 1)
            deviation = sqrt(sum((value - mean) ** 2 for value in sample) / max(len(sample), 1))
            self._usual = mean, deviation if len(sample) >= _LEAST_SAMPLE else 0.0
        mean, deviation = self._usual
        return (self._at(place) - mean) / deviation if deviation else 0.0

    def _at(self, place: int) -> float:
        before = Counter(terms(self._text[max(0, place - _COHESION) : place]))
        after = Counter(terms(self._text[place : place + _COHESION]))
        dot = sum(count * after[term] for term, count in before.items())
        size = sqrt(
            sum(count * count for count in before.values()) * sum(count * count for count in after.values())
        )
        return dot / size if size else 0.0
