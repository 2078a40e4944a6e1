"""Ranking the keys of a snapshot for a question (the paper's Eq. 12)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mrag_cli.parts.ordering import best, ordered
from mrag_cli.parts.store.layout import ARRAYS_FILE, MARKERS
from mrag_cli.parts.store.snapshot import Place
from mrag_cli.parts.terms import query_terms

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from mrag_cli.parts.store.segment import Segment
    from mrag_cli.parts.store.snapshot import Snapshot

_RRF_OFFSET = 60
_POOL = 200
"""Least number of markers of each path that are fused."""
_BLOCK = 4096
"""Markers whose cosines are computed at a time."""
_SLACK = np.float32(1e-4)
"""More than float32 can be off in an inner product of unit vectors."""


class Ranked(NamedTuple):
    """A marker in a ranking.

    Attributes:
        place: where it is.
        score: what it is ranked by.
        lexical: its BM25 score, 0 when no key has a term of the question or it was not asked for.
        dense: its cosine, or None when it was not asked for.
        reasons: what else changed its score, for people.
    """

    place: Place
    score: float
    lexical: float
    dense: float | None
    reasons: tuple[str, ...] = ()


class Scale(NamedTuple):
    """How a ranking makes one score of the two paths': ``terms * BM25 + vectors * max(cosine, 0)``."""

    terms: float
    vectors: float


class Masks(NamedTuple):
    """Which markers a filter lets through: for each segment bool, (markers,), or None for all."""

    by_segment: tuple[NDArray[np.bool_] | None, ...]


def products_of(snapshot: Snapshot, question: str) -> tuple[str, ...]:
    """Return the ids of the products that a question names, in an index of CHOP's; they count as terms."""
    if not any("chop" in segment.entry.origins for segment in snapshot.segments):
        return ()
    from mrag_cli.parts.named_products import named_products

    return named_products(snapshot, question)


def term_counts(question: str, products: Sequence[str] = ()) -> Counter[str]:
    """Return the terms that a question is ranked by, each with how often it counts."""
    return Counter([*query_terms(question), *products])


def lexical_scores(
    snapshot: Snapshot, question: str, products: Sequence[str] = ()
) -> list[NDArray[np.float32]]:
    """Return each marker's BM25 score: for each segment float32, (markers,); dead markers have 0.

    A marker's score is that of its best key. Sums run over the question's terms in order, so that equal
    keys get equal bits whatever segments they are in.
    """
    scores = [np.zeros(segment.entry.rows.keys, np.float32) for segment in snapshot.segments]
    for term, repeated in term_counts(question, products).items():
        weight = term_weight(snapshot, term, repeated)
        if weight is None:
            continue
        for segment, target in zip(snapshot.segments, scores, strict=True):
            rows, weights = segment.postings_of(term)
            with checked(segment):
                target[rows] += weights * weight
    return [_of_markers(segment, own, 0) for segment, own in zip(snapshot.segments, scores, strict=True)]


def term_weight(snapshot: Snapshot, term: str, repeated: int) -> np.float32 | None:
    """Return ``idf`` of a term times how often the question has it; None where no live key has it."""
    frequency = sum(_live_count(segment, segment.postings_of(term)[0]) for segment in snapshot.segments)
    if not frequency:
        return None
    total = snapshot.live_keys
    return np.float32(repeated * math.log(1 + (total - frequency + 0.5) / (frequency + 0.5)))


@contextmanager
def checked(segment: Segment) -> Iterator[None]:
    """Turn rows that point beyond a segment's arrays into an error that says so."""
    try:
        yield
    except (IndexError, ValueError):
        raise segment.corrupt(ARRAYS_FILE, "rows that are not there") from None


def _live_count(segment: Segment, rows: NDArray[np.uint32]) -> int:
    live = segment.live_keys
    if live is None:
        return len(rows)
    with checked(segment):
        return int(np.count_nonzero(live[rows]))


def _of_markers(segment: Segment, scores: NDArray[np.float32], nothing: float) -> NDArray[np.float32]:
    """Give each marker the score of its best key, and dead ones ``nothing``."""
    if len(scores) != segment.entry.rows.markers:
        with checked(segment):
            scores = np.maximum.reduceat(scores, segment.first_keys[:-1].astype(np.int64))
    if segment.live_markers is not None:
        scores[~segment.live_markers] = nothing
    return scores


def rank_lexical(
    snapshot: Snapshot, question: str, count: int, masks: Masks | None = None, products: Sequence[str] = ()
) -> list[Ranked]:
    """Return the ``count`` best markers by BM25; markers with score 0 are never among them."""
    scores = _masked(lexical_scores(snapshot, question, products), masks, 0)
    return [Ranked(place, score, score, None) for place, score in best(snapshot, scores, count)]


Near = Sequence["NDArray[np.int64] | None"]
"""For each segment the key rows that approximate search found for a question, or None for exact search."""


def rank_dense(
    snapshot: Snapshot,
    vector: NDArray[np.float32],
    count: int,
    masks: Masks | None = None,
    near: Near | None = None,
    products: Sequence[str] = (),
) -> list[Ranked]:
    """Return the ``count`` best markers by cosine, raised for keys of the products that a question names.

    Args:
        snapshot: an index with vectors.
        vector: float32, (dimension,), of unit length.
        count: how many.
        masks: which markers may be among them.
        near: what approximate search found; without it, or where it fell short, search is exact.
        products: ids of the products that the question names; search is exact where there are some.
    """
    near = None if products else near
    places: list[Place] = []
    exact: list[float] = []
    wide = vector.astype(np.float64)
    for number, segment in enumerate(snapshot.segments):
        rows = _near_markers(segment, near[number], count) if near and masks is None else None
        if rows is None:
            rows = _nearest(segment, vector, count, masks.by_segment[number] if masks else None, products)
        places.extend([Place(number, row) for row in rows.tolist()])
        exact.extend(_cosines_of(segment, rows, wide, products).tolist())
    return [Ranked(place, score, 0.0, score) for place, score in ordered(snapshot, places, exact, count)]


def _nearest(
    segment: Segment,
    vector: NDArray[np.float32],
    count: int,
    mask: NDArray[np.bool_] | None,
    products: Sequence[str],
) -> NDArray[np.int64]:
    """Return the markers that may be among the ``count`` best, by exact search."""
    if not segment.entry.rows.keys:
        return np.empty(0, np.int64)
    scores = segment.products(vector)
    if products:
        scores = scores + _bonus(segment, products)
    scores = _of_markers(segment, scores, -np.inf)
    if mask is not None:
        scores[~mask] = -np.inf
    rows = np.flatnonzero(scores > -np.inf)
    if len(rows) > count:
        least = np.partition(scores[rows], -count)[-count]
        rows = rows[scores[rows] >= least - _SLACK]
    return rows


def _near_markers(segment: Segment, keys: NDArray[np.int64] | None, count: int) -> NDArray[np.int64] | None:
    """Return the live markers of the keys; None when they are too few for an answer."""
    if keys is None:
        return None
    rows = np.sort(keys)
    if segment.entry.rows.keys != segment.entry.rows.markers:
        rows = np.unique(np.searchsorted(segment.first_keys, rows, side="right") - 1)
    if segment.live_markers is not None:
        with checked(segment):
            rows = rows[segment.live_markers[rows]]
    return rows if len(rows) >= min(count, segment.entry.live(MARKERS)) else None


def _bonus(segment: Segment, products: Sequence[str]) -> NDArray[np.float32]:
    from mrag_cli.parts.named_products import bonus

    with checked(segment):
        return bonus(segment, products)


def cosines(
    snapshot: Snapshot, vector: NDArray[np.float32], places: Sequence[Place], products: Sequence[str] = ()
) -> list[float]:
    """Return the cosine of each marker's best key, the same to the last bit wherever the marker is stored.

    Keys of the products that a question names have theirs raised.

    A matrix product rounds differently with the number of its rows; a sum over each row does not.
    """
    wide = vector.astype(np.float64)
    found = np.empty(len(places))
    by_segment = np.array([place.segment for place in places], np.int64)
    rows = np.array([place.row for place in places], np.int64)
    for number, segment in enumerate(snapshot.segments):
        own = np.flatnonzero(by_segment == number)
        found[own] = _cosines_of(segment, rows[own], wide, products)
    return [float(score) for score in found]


def _cosines_of(
    segment: Segment, rows: NDArray[np.int64], wide: NDArray[np.float64], products: Sequence[str]
) -> NDArray[np.float64]:
    gains = _bonus(segment, products) if products and len(rows) else None
    found = np.empty(len(rows))
    for start in range(0, len(rows), _BLOCK):
        with checked(segment):
            found[start : start + _BLOCK] = _best_products(segment, rows[start : start + _BLOCK], wide, gains)
    return found


def _best_products(
    segment: Segment,
    rows: NDArray[np.int64],
    wide: NDArray[np.float64],
    gains: NDArray[np.float32] | None,
) -> NDArray[np.float64]:
    if segment.entry.rows.keys == segment.entry.rows.markers:  # a key a marker: their rows are the same
        alone: NDArray[np.float64] = (segment.vectors[rows].astype(np.float64) * wide).sum(axis=1)
        return alone if gains is None else alone + gains[rows]
    starts = segment.first_keys[rows].astype(np.int64)
    sizes = segment.first_keys[rows + 1].astype(np.int64) - starts
    if sizes.min() < 1 or sizes.max() > segment.entry.rows.keys:
        raise IndexError
    firsts = np.cumsum(sizes) - sizes
    keys = np.arange(int(sizes.sum())) + np.repeat(starts - firsts, sizes)
    products: NDArray[np.float64] = (segment.vectors[keys].astype(np.float64) * wide).sum(axis=1)
    if gains is not None:
        products += gains[keys]
    return products if len(keys) == len(rows) else np.maximum.reduceat(products, firsts)


def rank_hybrid(
    snapshot: Snapshot,
    question: str,
    vector: NDArray[np.float32],
    count: int,
    masks: Masks | None = None,
    *,
    fusion: str = "sum",
    near: Near | None = None,
    products: Sequence[str] = (),
) -> tuple[list[Ranked], Scale]:
    """Return the ``count`` best markers by both paths together, and how their scores were made.

    The best markers of each path form a pool, in which every marker gets both scores. ``sum`` adds them after
    each is divided by its maximum; ``rrf`` adds ``1 / (60 + rank)``, no sum of scores, so its scale is 0.
    """
    size = max(count, _POOL)
    lexical = _masked(lexical_scores(snapshot, question, products), masks, 0)
    by_terms = best(snapshot, lexical, size)
    by_vectors = rank_dense(snapshot, vector, size, masks, near, products)
    places = list(dict.fromkeys([place for place, _ in by_terms] + [ranked.place for ranked in by_vectors]))
    term_scores = [float(lexical[place.segment][place.row]) for place in places]
    vector_scores = cosines(snapshot, vector, places, products)
    scale = Scale(0, 0)
    if fusion == "rrf":
        term_ranks = {place: rank for rank, (place, _) in enumerate(by_terms, 1)}
        vector_ranks = {ranked.place: rank for rank, ranked in enumerate(by_vectors, 1)}
        scores = [
            sum(1 / (_RRF_OFFSET + ranks[place]) for ranks in (term_ranks, vector_ranks) if place in ranks)
            for place in places
        ]
    else:
        scale = Scale(
            1 / (max(term_scores, default=0) or 1.0), 1 / (max(max(vector_scores, default=0), 0) or 1.0)
        )
        scores = [
            terms * scale.terms + max(cosine, 0) * scale.vectors
            for terms, cosine in zip(term_scores, vector_scores, strict=True)
        ]
    both = dict(zip(places, zip(term_scores, vector_scores, strict=True), strict=True))
    found = [Ranked(place, score, *both[place]) for place, score in ordered(snapshot, places, scores, count)]
    return found, scale


def _masked(
    scores: list[NDArray[np.float32]], masks: Masks | None, nothing: float
) -> list[NDArray[np.float32]]:
    if masks is not None:
        for own, mask in zip(scores, masks.by_segment, strict=True):
            if mask is not None:
                own[~mask] = nothing
    return scores
