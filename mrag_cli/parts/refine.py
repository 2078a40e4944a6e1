"""Refining a ranking: answer types, titles, the bridge to a page that a hit names, and coverage.

The steps work on the best markers of any ranking, whoever wrote them, and ask the index only what they
need (`Pages`). With ``s`` a marker's score divided by the best one::

    s += TYPE      if the value holds what the question asks for: a number, a date, a name
    s += TITLE     if the question names the marker's page, and at most MOST_TITLES pages
    s += BRIDGE * (s_j / s_top) * ln(1 + N / (1 + df)) / ln(1 + N)
                   if a value j among the first FROM names the marker's page and the question does not;
                   N markers in all, df of them naming the page; the best j counts, and there is one hop

Then the first SPREAD are taken one by one, each time the one with the most left after each query term's
part was multiplied by AGAIN for every time it was taken before.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from mrag_cli.parts.titles import mentions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

TYPE = 0.2
TITLE = 0.15
MOST_TITLES = 4
BRIDGE = 1.0
FROM = 5
SPREAD = 50
AGAIN = 0.9
CONSIDERED = 100
"""How many of a ranking's best markers are worth passing in."""
MOST_MEMBERS = 32
"""Of a page with more markers, a bridge lifts only those that score by themselves."""

P = TypeVar("P")


@dataclass(frozen=True, slots=True)
class Steps:
    """Which refinements are on; ``context`` is `mrag_cli.parts.pages`' own, before these."""

    context: bool = True
    types: bool = True
    titles: bool = True
    bridge: bool = True
    coverage: bool = True


class Candidates(NamedTuple, Generic[P]):
    """Markers with their scores.

    Attributes:
        places: where they are; equal for the same marker.
        scores: float64, (markers,).
        parts: float64, (markers, query terms), what each term of the question gives to the score; the rest
            of a score, from vectors, is not spread by coverage.
    """

    places: Sequence[P]
    scores: NDArray[np.float64]
    parts: NDArray[np.float64]


class Pages(Protocol[P]):
    """What the refinements ask of an index; only of live markers that the filters let through."""

    total: int
    """Number of live markers: ``N``."""

    def value(self, place: P) -> str:
        """Return a marker's value."""

    def page(self, place: P) -> int:
        """Return the hash of the title of a marker's page, 0 for none (see `titles.title_hash`)."""

    def known(self, hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Tell which hashes are those of pages."""

    def members(self, page: int) -> Sequence[P]:
        """Return the markers of a page by (doc, position)."""

    def naming(self, page: int, named: tuple[str, ...]) -> int:
        """Return how many markers of other pages have all the title's terms in their keys: ``df``."""

    def look(self, places: Sequence[P]) -> Candidates[P]:
        """Return markers with their scores for the question, also where those are 0."""


class Refined(NamedTuple, Generic[P]):
    """A marker in the refined ranking.

    Attributes:
        place: where it is.
        score: what it was taken for; 1 is the best score before.
        reasons: what changed its score, for people.
    """

    place: P
    score: float
    reasons: tuple[str, ...]


def refine(
    question: str, candidates: Candidates[P], pages: Pages[P], steps: Steps | None = None
) -> list[Refined[P]]:
    """Return candidates, and markers that a bridge leads to, in their refined order.

    Args:
        question: the question.
        candidates: the best markers of a ranking, best first, ties by (doc, position); about `CONSIDERED`.
        pages: the index.
        steps: which refinements are on; None for all.

    Returns:
        Every candidate once, best first. Equal scores keep the order of the candidates, bridged markers
        behind them in the order of the titles in the text. Without any step on, the ranking as it was.
    """
    steps = steps or Steps()
    if not len(candidates.scores) or candidates.scores[0] <= 0:
        return [
            Refined(place, float(score), ())
            for place, score in zip(candidates.places, candidates.scores, strict=True)
        ]
    pool = _Pool(candidates)
    if steps.types and (wanted := asked_for(question)):
        pool.lift_where(lambda place: wanted.is_in(pages.value(place)), TYPE, wanted.name)
    (in_question,) = mentions([question], pages.known) if steps.titles or steps.bridge else ({},)
    if steps.titles and 0 < len(in_question) <= MOST_TITLES:
        pool.lift_where(lambda place: pages.page(place) in in_question, TITLE, "its title is in the question")
    if steps.bridge:
        _bridge(pool, pages, set(in_question))
    return pool.spread() if steps.coverage else pool.sorted()


_WORDS = re.compile(r"\w+")
_DIGIT = re.compile(r"\d")
_NUMERALS = frozenset(
    "one two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty hundred "
    "thousand million billion dozen".split()
)
_CJK_NUMBER = re.compile(r"[一二三四五六七八九十百千万亿两]+[个位名次年人种条项家天]")
_YEAR = re.compile(r"\b(?:1\d|20)\d\d\b|\d+\s*[年月日]")
_MONTHS = frozenset(
    "January February March April May June July August September October November December".split()
)
_CJK_DATE = re.compile(r"[一二三四五六七八九十〇零]+[年月日]|世纪")
_NAME = re.compile(r"\b[A-Z][\w'’.-]*(?:\s+(?:[a-z]{1,3}\s+)?[A-Z][\w'’.-]*)+")


# One pattern of many alternatives says the same and takes several times as long, for every candidate.
def _holds_number(value: str) -> bool:
    return bool(
        _DIGIT.search(value)
        or not _NUMERALS.isdisjoint(_WORDS.findall(value.lower()))
        or _CJK_NUMBER.search(value)
    )


def _holds_date(value: str) -> bool:
    return bool(
        (_DIGIT.search(value) and _YEAR.search(value))
        or not _MONTHS.isdisjoint(_WORDS.findall(value))
        or _CJK_DATE.search(value)
    )


def _holds_name(value: str) -> bool:
    return bool(_NAME.search(value))


@dataclass(frozen=True, slots=True)
class AnswerType:
    """What a question asks for.

    Attributes:
        name: for people.
        is_in: tells whether a value holds an answer of this type.
    """

    name: str
    is_in: Callable[[str], bool]


_ASKED = (
    (
        re.compile(
            r"\bhow (?:many|much|long|old|far|large|big|tall|often|high|fast)\b"
            r"|\b(?:number|percentage|percent|amount|size|population) of\b"
            r"|多少|几[个位名次年人种条项家天]|多[大长高久]",
            re.IGNORECASE,
        ),
        AnswerType("it holds a number", _holds_number),
    ),
    (
        re.compile(
            r"\bwhen\b|\b(?:what|which) (?:year|date|month|day|century|decade)\b"
            r"|何时|什么时[候间]|哪一?年|哪天|几[月号]|年份|日期",
            re.IGNORECASE,
        ),
        AnswerType("it holds a date", _holds_date),
    ),
    (
        re.compile(
            r"\bwho(?:m|se)?\b|\b(?:what|which) (?:person|actor|actress|director|author|singer|writer"
            r"|composer|player)\b",
            re.IGNORECASE,
        ),
        AnswerType("it holds a name", _holds_name),
    ),
)


def asked_for(question: str) -> AnswerType | None:
    """Return what a question asks for, in English or Chinese, or None where its words do not tell."""
    return next((answer for asks, answer in _ASKED if asks.search(question)), None)


class _Pool(Generic[P]):
    """Markers with what lifts them; scores are shares of the best one."""

    def __init__(self, candidates: Candidates[P]) -> None:
        self._best = float(candidates.scores[0])
        self.places = list(candidates.places)
        self._index = {place: number for number, place in enumerate(self.places)}
        self._scores = candidates.scores / self._best
        self._parts = candidates.parts / self._best
        self._lifts = np.zeros(len(self.places))
        self._reasons: list[list[str]] = [[] for _ in self.places]

    @property
    def totals(self) -> NDArray[np.float64]:
        return self._scores + self._lifts

    def lift_where(self, test: Callable[[P], bool], lift: float, reason: str) -> None:
        for number, place in enumerate(self.places):
            if test(place):
                self._lift(number, lift, reason)

    def _lift(self, number: int, lift: float, reason: str) -> None:
        self._lifts[number] += lift
        self._reasons[number].append(f"{reason}: +{lift:.2f}")

    def bridge(self, found: Candidates[P], lift: float, reason: str) -> None:
        """Lift markers, taking in those that are new."""
        new = [number for number, place in enumerate(found.places) if place not in self._index]
        for number in new:
            self._index[found.places[number]] = len(self.places)
            self.places.append(found.places[number])
            self._reasons.append([])
        self._scores = np.concatenate([self._scores, found.scores[new] / self._best])
        self._parts = np.concatenate([self._parts, found.parts[new] / self._best])
        self._lifts = np.concatenate([self._lifts, np.zeros(len(new))])
        for place in found.places:
            self._lift(self._index[place], lift, reason)

    def sorted(self) -> list[Refined[P]]:
        totals = self.totals
        return [
            self._refined(number, totals[number]) for number in np.argsort(-totals, kind="stable").tolist()
        ]

    def spread(self) -> list[Refined[P]]:
        totals = self.totals
        order = np.argsort(-totals, kind="stable")
        first, rest = order[:SPREAD], order[SPREAD:].tolist()
        parts, left = self._parts[first], totals[first] - self._parts[first].sum(axis=1)
        discounts = np.where(parts > 0, AGAIN, 1.0)
        factors = np.ones(parts.shape[1])
        found = []
        for _ in range(len(first)):
            scores = left + parts @ factors
            taken = int(scores.argmax())
            found.append(self._refined(int(first[taken]), float(scores[taken])))
            left[taken] = -np.inf
            factors *= discounts[taken]
        return found + [self._refined(number, totals[number]) for number in rest]

    def _refined(self, number: int, score: float) -> Refined[P]:
        return Refined(self.places[number], float(score), tuple(self._reasons[number]))


def _bridge(pool: _Pool[P], pages: Pages[P], in_question: set[int]) -> None:
    totals = pool.totals
    lifts: dict[int, tuple[float, str]] = {}
    first = np.argsort(-totals, kind="stable")[:FROM].tolist()
    values = [pages.value(pool.places[number]) for number in first]
    for number, in_value in zip(first, mentions(values, pages.known), strict=True):
        place = pool.places[number]
        for page, named in in_value.items():
            if page in in_question or page == pages.page(place):
                continue
            rarity = math.log1p(pages.total / (1 + pages.naming(page, named))) / math.log1p(pages.total)
            lift = BRIDGE * float(totals[number] / totals[first[0]]) * rarity
            if lift > lifts.get(page, (0.0, ""))[0]:
                lifts[page] = (lift, " ".join(named))
    for page, (lift, name) in lifts.items():
        members = pages.members(page)
        found = pages.look(members)
        if len(members) > MOST_MEMBERS:
            kept = np.sort(np.argsort(-found.scores, kind="stable")[:MOST_MEMBERS])
            kept = kept[found.scores[kept] > 0]
            found = Candidates([members[row] for row in kept.tolist()], found.scores[kept], found.parts[kept])
        pool.bridge(found, lift, f"its page is named by a better hit ({name})")
