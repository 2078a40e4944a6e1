"""What the refinements of a ranking ask of a snapshot, for one question.

One refinement is made here, because it needs the index more than the ranking: a marker whose value is a part
of a unit's own words is lifted by the rest of that unit, and the unit's other markers come with it::

    s += CONTEXT * sum over terms t of the question:  idf(t) * (1 - product over m of the unit: 1 - w(t, m))

with ``w`` the term's weight in the marker's key, so that the sum is what BM25 gives to the unit as a whole,
without a second index of units. Only the first `refine.CONSIDERED` markers bring their units.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

import numpy as np

from mrag_cli.parts.ordering import ordered
from mrag_cli.parts.ranking import Ranked, checked, cosines, term_counts, term_weight
from mrag_cli.parts.refine import CONSIDERED, Candidates, Steps, refine
from mrag_cli.parts.store.layout import ARRAYS_FILE
from mrag_cli.parts.store.snapshot import Place

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from mrag_cli.parts.ranking import Masks, Scale
    from mrag_cli.parts.store.segment import Segment
    from mrag_cli.parts.store.snapshot import Snapshot

CONTEXT = 0.7
_ROW = (1 << 32) - 1


def refined(
    ranking: Sequence[Ranked], question: str, pages: QuestionPages, steps: Steps, count: int
) -> list[Ranked]:
    """Return a ranking refined, with the markers that a bridge leads to taken in.

    Scores become shares of the best one before. Only the first `refine.CONSIDERED` are refined; the rest
    follow as they were.

    Args:
        ranking: best first.
        question: what it was made for.
        pages: the snapshot as the question sees it.
        steps: which refinements are on.
        count: how many of the refined ranking are wanted.
    """
    if not ranking or steps == Steps(*[False] * len(fields(Steps))):
        return list(ranking[:count])
    before = {code(ranked.place): ranked for ranked in ranking}
    codes = list(before)[:CONSIDERED]
    scores = np.array([ranked.score for ranked in ranking[:CONSIDERED]])
    lifts = pages.contexts(codes) if steps.context else {}
    there = set(codes)
    codes += [one for one in lifts if one not in there]
    _, own, parts = pages.look(codes)
    scores = np.concatenate([scores, own[len(scores) :]])
    scores += [lifts.get(one, 0.0) for one in codes]
    order = np.argsort(-scores, kind="stable")
    codes, scores, parts = [codes[number] for number in order.tolist()], scores[order], parts[order]
    best = float(scores[0]) or 1.0
    found = refine(question, Candidates(codes, scores, parts), pages, steps)
    found = found[:count]
    new = [one for one, _, _ in found if one not in before]
    before.update(zip(new, pages.unranked(new), strict=True))
    result = []
    for one, score, reasons in found:
        if lift := lifts.get(one, 0.0) / best:
            reasons = (f"the unit around it: +{lift:.2f}", *reasons)
        place, _, lexical, dense, _ = before.pop(one)
        result.append(Ranked(place, score, lexical, dense, reasons))
    rest = list(before.values())[: count - len(result)]
    return result + [ranked._replace(score=ranked.score / best) for ranked in rest]


def code(place: Place) -> int:
    """Return a place as one number, which is hashed and put into arrays faster than two."""
    return place.segment << 32 | place.row


def place_of(one: int) -> Place:
    """Return the place that `code` made a number of."""
    return Place(one >> 32, one & _ROW)


class QuestionPages:
    """The pages of a snapshot as one question sees them; see `mrag_cli.parts.refine.Pages`.

    Markers are known by `code`.

    Args:
        snapshot: the open index.
        question: the question.
        scale: how the question's ranking makes one score of the two paths'.
        vector: the question's vector, or None for lexical ranking.
        masks: which markers a filter lets through, or None for all.
        products: ids of the products that the question names.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        question: str,
        scale: Scale,
        vector: NDArray[np.float32] | None = None,
        masks: Masks | None = None,
        products: Sequence[str] = (),
    ) -> None:
        self.total = snapshot.live_markers
        self._snapshot = snapshot
        self._scale = scale
        self._vector = vector
        self._masks = masks
        self._products = products
        self._terms = [
            (term, weight)
            for term, repeated in term_counts(question, products).items()
            if (weight := term_weight(snapshot, term, repeated)) is not None
        ]
        self._values: dict[int, str] = {}
        self._members: dict[int, list[int]] = {}
        self._rows: dict[int, int] = {}
        self._parts = np.empty((0, len(self._terms)))

    def value(self, place: int) -> str:
        """Return a marker's value."""
        found = self._values.get(place)
        if found is None:
            found = self._values[place] = self._snapshot.segments[place >> 32].value(place & _ROW)
        return found

    def page(self, place: int) -> int:
        """Return the hash of the title of a marker's page, 0 for none."""
        return int(self._snapshot.segments[place >> 32].array("markers.pages")[place & _ROW])

    def known(self, hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Tell which hashes are those of pages with a live marker that the filters let through."""
        there = np.zeros(len(hashes), np.bool_)
        for segment in self._snapshot.segments:
            table = segment.array("pages.hashes")
            if len(table):
                places = np.minimum(table.searchsorted(hashes), len(table) - 1)
                there |= table[places] == hashes
        for number in np.flatnonzero(there).tolist():
            there[number] = bool(self.members(int(hashes[number])))
        return there

    def members(self, page: int) -> Sequence[int]:
        """Return the markers of a page that are live and pass the filters, by (doc, position)."""
        found = self._members.get(page)
        if found is None:
            places: list[Place] = []
            for number, segment in enumerate(self._snapshot.segments):
                table, wanted = segment.array("pages.hashes"), np.uint64(page)
                start, end = table.searchsorted(wanted), table.searchsorted(wanted, side="right")
                rows = self._passing(number, segment.array("pages.rows")[start:end])
                places += [Place(number, row) for row in rows.tolist()]
            alike = [0.0] * len(places)  # nothing but (doc, position) orders them
            in_order = ordered(self._snapshot, places, alike, len(places))
            found = self._members[page] = [code(place) for place, _ in in_order]
        return found

    def _passing(self, number: int, rows: NDArray[np.uint32]) -> NDArray[np.uint32]:
        segment = self._snapshot.segments[number]
        with checked(segment):
            if segment.live_markers is not None:
                rows = rows[segment.live_markers[rows]]
            if self._masks is not None and (mask := self._masks.by_segment[number]) is not None:
                rows = rows[mask[rows]]
        return rows

    def naming(self, page: int, named: tuple[str, ...]) -> int:
        """Return how many live markers of other pages have all the title's terms in one of their keys."""
        count = 0
        for number, segment in enumerate(self._snapshot.segments):
            postings = sorted((segment.postings_of(term)[0] for term in set(named)), key=len)
            keys = postings[0]
            for rows in postings[1:]:
                keys = keys[_among(keys, rows)]
            if len(keys):
                with checked(segment):
                    rows = np.unique(segment.first_keys.searchsorted(keys, side="right") - 1)
                    rows = self._passing(number, rows)
                    count += int(np.count_nonzero(segment.array("markers.pages")[rows] != np.uint64(page)))
        return count

    def look(self, places: Sequence[int]) -> Candidates[int]:
        """Return markers with their scores for the question, also where those are 0."""
        parts = self._all_parts(places) * self._scale.terms
        scores = parts.sum(axis=1)
        if self._vector is not None:
            found = cosines(self._snapshot, self._vector, list(map(place_of, places)), self._products)
            scores = scores + np.maximum(found, 0) * self._scale.vectors
        return Candidates(places, scores, parts)

    def contexts(self, places: Sequence[int]) -> dict[int, float]:
        """Return what its unit adds to the score of each marker that has one, and of the unit's others.

        Markers that are not among ``places`` come after those that bring them, in the document's order.
        """
        unit_of: dict[int, int] = {}
        firsts: list[int] = []
        for first, end in dict.fromkeys(self._units(places)):
            firsts.append(len(unit_of))
            unit_of.update(dict.fromkeys(range(first, end), len(firsts) - 1))
        if not firsts:
            return {}
        # a unit's markers stand together in `unit_of`, so that a product over a run is one over a unit
        weights = np.array([weight for _, weight in self._terms], np.float64)
        rest = np.multiply.reduceat(1 - self._all_parts(list(unit_of)) / weights, firsts, axis=0)
        lifts = (((1 - rest) * weights).sum(axis=1) * (self._scale.terms * CONTEXT)).tolist()
        return {place: lifts[unit] for place, unit in unit_of.items()}

    def _units(self, places: Sequence[int]) -> list[tuple[int, int]]:
        """Return the first and the end of those cut from the same unit, for each marker that was cut."""
        codes = np.array(places, np.int64)
        numbers, firsts, ends = codes >> 32, codes.copy(), codes.copy()
        for number, segment in enumerate(self._snapshot.segments):
            own = np.flatnonzero(numbers == number)
            rows = codes[own] & _ROW
            contexts = segment.array("markers.contexts")
            with checked(segment):
                cut = contexts[rows] != 0
            if cut.any():
                own, rows = own[cut], rows[cut]
                first, end = _run_around(segment, contexts, rows)
                firsts[own] += first - rows
                ends[own] += end - rows
        cut = firsts < ends
        return list(zip(firsts[cut].tolist(), ends[cut].tolist(), strict=True))

    def unranked(self, places: Sequence[int]) -> list[Ranked]:
        """Return markers as a ranking has them, with the scores of its paths and without a place in it."""
        by_vectors_alone = self._scale.vectors and not self._scale.terms
        lexical = [0.0] * len(places) if by_vectors_alone else self._all_parts(places).sum(axis=1).tolist()
        own = list(map(place_of, places))
        dense = (
            [None] * len(own)
            if self._vector is None
            else cosines(self._snapshot, self._vector, own, self._products)
        )
        return [Ranked(place, 0.0, *both) for place, *both in zip(own, lexical, dense, strict=True)]

    def _all_parts(self, places: Sequence[int]) -> NDArray[np.float64]:
        """Return what each term gives to each marker: float64, (markers, terms); each is computed once."""
        new = [place for place in dict.fromkeys(places) if place not in self._rows]
        if new:
            self._rows.update(zip(new, range(len(self._rows), len(self._rows) + len(new)), strict=True))
            codes = np.array(new, np.int64)
            parts = np.zeros((len(new), len(self._terms)))
            for number, segment in enumerate(self._snapshot.segments):
                own = np.flatnonzero(codes >> 32 == number)
                if len(own):
                    own = own[np.argsort(codes[own])]  # rows in order are found in half the time
                    parts[own] = self._new_parts(segment, codes[own] & _ROW)
            self._parts = np.concatenate([self._parts, parts])
        return self._parts[[self._rows[place] for place in places]]

    def _new_parts(self, segment: Segment, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return what each term gives to the best key of each marker: float64, (markers, terms)."""
        with checked(segment):
            starts = segment.first_keys[rows].astype(np.int64)
            sizes = segment.first_keys[rows + 1].astype(np.int64) - starts
        if sizes.min(initial=1) < 1 or sizes.max(initial=1) > segment.entry.rows.keys:
            raise segment.corrupt(ARRAYS_FILE, "rows that are not there")
        firsts = np.cumsum(sizes) - sizes
        keys = np.arange(int(sizes.sum())) + np.repeat(starts - firsts, sizes)
        found = np.zeros((len(keys), len(self._terms)))
        wanted = keys.astype(np.uint32)
        for column, (term, weight) in enumerate(self._terms):
            of_term, weights = segment.postings_of(term)
            if len(of_term):
                places = np.minimum(of_term.searchsorted(wanted), len(of_term) - 1)
                has = of_term[places] == wanted
                found[has, column] = weights[places[has]] * weight
        if len(keys) == len(rows):
            return found
        totals = found.sum(axis=1)
        best = [
            first + int(totals[first : first + size].argmax())
            for first, size in zip(firsts.tolist(), sizes.tolist(), strict=True)
        ]
        return found[best]


def _run_around(
    segment: Segment, contexts: NDArray[np.uint32], rows: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first row and the end of the run of equal ``contexts`` around each row of a document's."""
    documents = segment.documents_of(rows)
    least, end = segment.first_markers[documents], segment.first_markers[documents + 1].astype(np.int64)
    units = contexts[rows]
    firsts, lasts = rows.copy(), rows.copy()
    while (grows := (firsts > least) & (contexts[firsts - 1] == units)).any():
        firsts -= grows
    limit = len(contexts) - 1
    while (grows := (lasts + 1 < end) & (contexts[np.minimum(lasts + 1, limit)] == units)).any():
        lasts += grows
    return firsts, lasts + 1


def _among(keys: NDArray[np.uint32], rows: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Tell which of some ascending key rows are among others, ascending too."""
    if not len(rows):
        return np.zeros(len(keys), np.bool_)
    places = np.minimum(rows.searchsorted(keys), len(rows) - 1)
    found: NDArray[np.bool_] = rows[places] == keys
    return found
