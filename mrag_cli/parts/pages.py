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

from mrag_cli.parts.ranking import Ranked, checked, cosines, term_counts, term_weight
from mrag_cli.parts.refine import CONSIDERED, Candidates, Steps, refine
from mrag_cli.parts.store.layout import ARRAYS_FILE
from mrag_cli.parts.store.snapshot import Place

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from mrag_cli.parts.ranking import Masks, Scale
    from mrag_cli.parts.store.snapshot import Snapshot

CONTEXT = 0.7


def refined(ranking: Sequence[Ranked], question: str, pages: QuestionPages, steps: Steps) -> list[Ranked]:
    """Return a ranking refined, with the markers that a bridge leads to taken in.

    Scores become shares of the best one before. Only the first `refine.CONSIDERED` are refined; the rest
    follow as they were.

    Args:
        ranking: best first.
        question: what it was made for.
        pages: the snapshot as the question sees it.
        steps: which refinements are on.
    """
    if not ranking or steps == Steps(*[False] * len(fields(Steps))):
        return list(ranking)
    first, rest = ranking[:CONSIDERED], ranking[CONSIDERED:]
    places = [ranked.place for ranked in first]
    scores = np.array([ranked.score for ranked in first])
    lifts = pages.contexts(places) if steps.context else {}
    if lifts:
        there = set(places)
        places += [place for place in lifts if place not in there]
        scores = np.concatenate([scores, np.zeros(len(places) - len(scores))])
        scores += [lifts.get(place, 0.0) for place in places]
        order = np.argsort(-scores, kind="stable")
        places, scores = [places[number] for number in order.tolist()], scores[order]
    best = float(scores[0]) or 1.0
    found = refine(question, Candidates(places, scores, pages.look(places).parts), pages, steps)
    before = {ranked.place: ranked for ranked in ranking}
    new = [entry.place for entry in found if entry.place not in before]
    before.update(zip(new, pages.unranked(new), strict=True))
    result = []
    for entry in found:
        reasons = entry.reasons
        if lift := lifts.get(entry.place, 0.0) / best:
            reasons = (f"the unit around it: +{lift:.2f}", *reasons)
        result.append(before[entry.place]._replace(score=entry.score, reasons=reasons))
    taken = {entry.place for entry in found}
    result.extend(ranked._replace(score=ranked.score / best) for ranked in rest if ranked.place not in taken)
    return result


class QuestionPages:
    """The pages of a snapshot as one question sees them; see `mrag_cli.parts.refine.Pages`.

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
            (term.encode(), weight)
            for term, repeated in term_counts(question, products).items()
            if (weight := term_weight(snapshot, term, repeated)) is not None
        ]
        self._values: dict[Place, str] = {}
        self._known_parts: dict[Place, NDArray[np.float64]] = {}
        self._known_postings: dict[tuple[int, int], tuple[NDArray[np.uint32], NDArray[np.float32]]] = {}

    def value(self, place: Place) -> str:
        """Return a marker's value."""
        found = self._values.get(place)
        if found is None:
            found = self._values[place] = self._snapshot.segments[place.segment].value(place.row)
        return found

    def page(self, place: Place) -> int:
        """Return the hash of the title of a marker's page, 0 for none."""
        return int(self._snapshot.segments[place.segment].array("markers.pages")[place.row])

    def known(self, hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Tell which hashes are those of pages with a live marker that the filters let through."""
        there = np.zeros(len(hashes), np.bool_)
        for segment in self._snapshot.segments:
            table = segment.array("pages.hashes")
            if len(table):
                places = np.minimum(np.searchsorted(table, hashes), len(table) - 1)
                there |= table[places] == hashes
        for number in np.flatnonzero(there).tolist():
            there[number] = bool(self.members(int(hashes[number])))
        return there

    def members(self, page: int) -> Sequence[Place]:
        """Return the markers of a page that are live and pass the filters, by (doc, position)."""
        found: list[tuple[str, int, Place]] = []
        for number, segment in enumerate(self._snapshot.segments):
            table = segment.array("pages.hashes")
            wanted = np.uint64(page)
            start, end = np.searchsorted(table, wanted), np.searchsorted(table, wanted, side="right")
            rows = self._passing(number, segment.array("pages.rows")[start:end])
            names: dict[int, str] = {}
            for row in rows.tolist():
                document = segment.document_of(row)
                if document not in names:
                    names[document] = segment.document_id(document)
                found.append((names[document], row, Place(number, row)))
        found.sort(key=lambda entry: entry[:2])
        return [place for _, _, place in found]

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
            postings = sorted((segment.postings.of(term.encode())[0] for term in set(named)), key=len)
            keys = postings[0]
            for rows in postings[1:]:
                keys = keys[_among(keys, rows)]
            if len(keys):
                with checked(segment):
                    rows = np.unique(np.searchsorted(segment.first_keys, keys, side="right") - 1)
                    rows = self._passing(number, rows)
                    count += int(np.count_nonzero(segment.array("markers.pages")[rows] != np.uint64(page)))
        return count

    def look(self, places: Sequence[Place]) -> Candidates[Place]:
        """Return markers with their scores for the question, also where those are 0."""
        parts = self._all_parts(places)
        parts *= self._scale.terms
        scores = parts.sum(axis=1)
        if self._vector is not None:
            found = cosines(self._snapshot, self._vector, places, self._products)
            scores = scores + np.maximum(found, 0) * self._scale.vectors
        return Candidates(list(places), scores, parts)

    def contexts(self, places: Sequence[Place]) -> dict[Place, float]:
        """Return what its unit adds to the score of each marker that has one, and of the unit's others.

        Markers that are not among ``places`` come after those that bring them, in the document's order.
        """
        unit_of: dict[Place, int] = {}
        firsts: list[int] = []
        for place in places:
            if place in unit_of:
                continue
            members = self._unit(place)
            if members:
                unit_of.update((member, len(firsts)) for member in members)
                firsts.append(len(unit_of) - len(members))
        if not firsts:
            return {}
        # a unit's markers stand together in `every`, so that one product over each run is one over each unit
        every = list(unit_of)
        weights = np.array([weight for _, weight in self._terms], np.float64)
        rest = np.multiply.reduceat(1 - self._all_parts(every) / weights, firsts, axis=0)
        lifts = (((1 - rest) * weights).sum(axis=1) * (self._scale.terms * CONTEXT)).tolist()
        return {place: lifts[unit] for place, unit in unit_of.items()}

    def _unit(self, place: Place) -> tuple[Place, ...]:
        """Return the markers cut from the same unit as a marker, in order; none if it was not cut."""
        segment = self._snapshot.segments[place.segment]
        contexts = segment.array("markers.contexts")
        unit = contexts[place.row]
        if not unit:
            return ()
        document = segment.document_of(place.row)
        least, end = segment.first_markers[document : document + 2].tolist()
        first = last = place.row
        while first > least and contexts[first - 1] == unit:
            first -= 1
        while last + 1 < end and contexts[last + 1] == unit:
            last += 1
        return tuple(Place(place.segment, row) for row in range(first, last + 1))

    def unranked(self, places: Sequence[Place]) -> list[Ranked]:
        """Return markers as a ranking has them, with the scores of its paths and without a place in it."""
        by_vectors_alone = self._scale.vectors and not self._scale.terms
        lexical = [0.0] * len(places) if by_vectors_alone else self._all_parts(places).sum(axis=1).tolist()
        dense = (
            None if self._vector is None else cosines(self._snapshot, self._vector, places, self._products)
        )
        return [
            Ranked(place, 0.0, lexical[number], dense[number] if dense else None)
            for number, place in enumerate(places)
        ]

    def _all_parts(self, places: Sequence[Place]) -> NDArray[np.float64]:
        """Return what each term gives to each marker: float64, (markers, terms); each is computed once."""
        new = [place for place in dict.fromkeys(places) if place not in self._known_parts]
        for number in range(len(self._snapshot.segments)):
            own = [place for place in new if place.segment == number]
            if own:
                found = self._parts(number, np.array([place.row for place in own]))
                self._known_parts.update(zip(own, found, strict=True))
        if not places:
            return np.zeros((0, len(self._terms)))
        return np.array([self._known_parts[place] for place in places])

    def _parts(self, number: int, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return what each term gives to the best key of each marker: float64, (markers, terms)."""
        segment = self._snapshot.segments[number]
        with checked(segment):
            starts = segment.first_keys[rows].astype(np.int64)
            sizes = segment.first_keys[rows + 1].astype(np.int64) - starts
        if sizes.min(initial=1) < 1 or sizes.max(initial=1) > segment.entry.rows.keys:
            raise segment.corrupt(ARRAYS_FILE, "rows that are not there")
        firsts = np.cumsum(sizes) - sizes
        keys = np.arange(int(sizes.sum())) + np.repeat(starts - firsts, sizes)
        found = np.zeros((len(keys), len(self._terms)))
        for column, (_, weight) in enumerate(self._terms):
            of_term, weights = self._postings(number, column)
            if len(of_term):
                places = np.minimum(np.searchsorted(of_term, keys), len(of_term) - 1)
                has = of_term[places] == keys
                found[has, column] = weights[places[has]] * weight
        if len(keys) == len(rows):
            return found
        totals = found.sum(axis=1)
        best = [
            first + int(totals[first : first + size].argmax())
            for first, size in zip(firsts.tolist(), sizes.tolist(), strict=True)
        ]
        return found[best]

    def _postings(self, number: int, column: int) -> tuple[NDArray[np.uint32], NDArray[np.float32]]:
        found = self._known_postings.get((number, column))
        if found is None:
            found = self._snapshot.segments[number].postings.of(self._terms[column][0])
            self._known_postings[number, column] = found
        return found


def _among(keys: NDArray[np.uint32], rows: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Tell which of some ascending key rows are among others, ascending too."""
    if not len(rows):
        return np.zeros(len(keys), np.bool_)
    places = np.minimum(np.searchsorted(rows, keys), len(rows) - 1)
    found: NDArray[np.bool_] = rows[places] == keys
    return found
