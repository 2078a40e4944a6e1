"""BM25 over the keys of one segment. The only module that touches bm25s.

The score of a key ``k`` for a query ``q`` is the paper's Eq. 12 with Lucene's BM25::

    score(q, k) = sum over terms t of q:  idf(t) * tf(t,k) / (tf(t,k) + k1 * (1 - b + b * |k| / pivot))
    idf(t)      = ln(1 + (N - df(t) + 0.5) / (df(t) + 0.5))

bm25s bakes ``idf`` and the mean length into what it stores, which would make every stored score wrong
with the next document. Here its documented override point stores the factor without ``idf``, with a
fixed length pivot; ``N`` and ``df`` are summed over the live rows of all segments when a query comes.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from mrag_cli.parts.store.manifest import LexicalSettings

    _Inverted = tuple[NDArray[np.float32], NDArray[np.uint32], NDArray[np.uint64]]

_IMPORT_PAYS = 50_000
"""Keys below which an update does not wait for bm25s, whose import takes 0.15 s."""


class Postings(NamedTuple):
    """The lexical arrays of a segment.

    Attributes:
        terms_text: uint8, the terms in ascending order of their UTF-8 bytes, run together.
        terms_offsets: uint64, (terms + 1,), where each term starts in ``terms_text``.
        offsets: uint64, (terms + 1,), where each term's postings start.
        rows: uint32, (postings,), key rows, ascending within a term.
        weights: float32, (postings,), the score's factor without ``idf``.
    """

    terms_text: NDArray[np.uint8]
    terms_offsets: NDArray[np.uint64]
    offsets: NDArray[np.uint64]
    rows: NDArray[np.uint32]
    weights: NDArray[np.float32]

    def find(self, term: bytes) -> int | None:
        """Return the number of a term, or None; reads about ``log2(terms)`` places."""
        low, high = 0, len(self.terms_offsets) - 1
        while low < high:
            middle = (low + high) // 2
            start, end = self.terms_offsets[middle : middle + 2].tolist()
            if self.terms_text[start:end].tobytes() < term:
                low = middle + 1
            else:
                high = middle
        if low < len(self.terms_offsets) - 1:
            start, end = self.terms_offsets[low : low + 2].tolist()
            if self.terms_text[start:end].tobytes() == term:
                return low
        return None

    def of(self, term: bytes) -> tuple[NDArray[np.uint32], NDArray[np.float32]]:
        """Return the key rows and weights of a term, both empty when no key has it."""
        found = self.find(term)
        if found is None:
            return self.rows[:0], self.weights[:0]
        start, end = self.offsets[found : found + 2].tolist()
        return self.rows[start:end], self.weights[start:end]


def build(
    vocabulary: dict[str, int],
    ids: NDArray[np.uint32],
    lengths: NDArray[np.uint32],
    settings: LexicalSettings,
) -> Postings:
    """Build a segment's postings.

    Args:
        vocabulary: number of each term, in the order in which they were first met.
        ids: uint32, the term numbers of all keys, one key after the other.
        lengths: uint32, (keys,), the number of terms of each key.
        settings: BM25's parameters.
    """
    names = [term.encode() for term in vocabulary]
    order = sorted(range(len(names)), key=names.__getitem__)
    rank = np.empty(len(order), np.uint32)
    rank[order] = np.arange(len(order), dtype=np.uint32)
    invert = _inverted_by_bm25s if len(lengths) >= _IMPORT_PAYS else _invert
    weights, rows, offsets = invert(rank[ids], lengths, len(names), settings)
    text, text_offsets = run_together([names[number] for number in order])
    return Postings(text, text_offsets, offsets, rows, weights)


def _inverted_by_bm25s(
    ids: NDArray[np.uint32], lengths: NDArray[np.uint32], terms: int, settings: LexicalSettings
) -> _Inverted:
    """Do what `_invert` does as bm25s's own index-building step."""
    from bm25s import BM25

    class _WithoutCorpusStatistics(BM25):  # type: ignore[misc] # bm25s ships no types
        def build_index_from_ids(
            self, unique_token_ids: Any, corpus_token_ids: Any, **_display: Any
        ) -> dict[str, Any]:
            ids, lengths = corpus_token_ids
            data, indices, indptr = _invert(ids, lengths, len(unique_token_ids), settings)
            return {"data": data, "indices": indices, "indptr": indptr, "num_docs": len(lengths)}

    engine = _WithoutCorpusStatistics(k1=settings.k1, b=settings.b)
    scores = engine.build_index_from_ids(range(terms), (ids, lengths))
    return scores["data"], scores["indices"], scores["indptr"]


def run_together(parts: Sequence[bytes]) -> tuple[NDArray[np.uint8], NDArray[np.uint64]]:
    """Return byte strings run together (uint8) and where each starts (uint64, one more than parts)."""
    offsets = np.zeros(len(parts) + 1, np.uint64)
    np.cumsum([len(part) for part in parts], out=offsets[1:])
    return np.frombuffer(b"".join(parts), np.uint8), offsets


def _invert(
    ids: NDArray[np.uint32], lengths: NDArray[np.uint32], terms: int, settings: LexicalSettings
) -> _Inverted:
    """Return weights, rows and offsets in the order of terms, rows ascending within each."""
    codes = ids.astype(np.uint64) << np.uint64(32)
    codes |= np.repeat(np.arange(len(lengths), dtype=np.uint32), lengths)
    codes.sort()
    first = np.ones(len(codes), np.bool_)
    np.not_equal(codes[1:], codes[:-1], out=first[1:])
    starts = np.flatnonzero(first)
    frequencies = np.diff(starts, append=len(codes)).astype(np.float32)
    codes = codes[starts]
    rows = codes.astype(np.uint32)  # the low half
    codes >>= np.uint64(32)
    offsets = np.zeros(terms + 1, np.uint64)
    np.cumsum(np.bincount(codes.astype(np.int64), minlength=terms), out=offsets[1:])
    norms = settings.k1 * (1 - settings.b + settings.b * (lengths.astype(np.float64) / settings.pivot))
    weights = frequencies / (frequencies + norms.astype(np.float32)[rows])
    return weights, rows, offsets


def merge(segments: Sequence[Postings], kept_rows: Sequence[NDArray[np.bool_]]) -> Postings:
    """Merge postings of several segments, leaving out the rows that are dead.

    Args:
        segments: the postings, in the order in which their rows are to follow each other.
        kept_rows: bool, (keys,) for each segment, which of its key rows stay.

    Returns:
        Postings with exactly the weights of a fresh build: weights depend on nothing but their own key.
    """
    names: list[list[bytes]] = [_names(postings) for postings in segments]
    merged = sorted(set().union(*names))
    number = {name: position for position, name in enumerate(merged)}
    counts = np.zeros((len(segments), len(merged)), np.int64)
    staying: list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]] = []
    base = 0
    for index, (postings, kept) in enumerate(zip(segments, kept_rows, strict=True)):
        targets = np.array([number[name] for name in names[index]], np.int64)
        keep = kept[postings.rows]
        sizes = np.diff(postings.offsets).astype(np.int64)
        of_posting = np.repeat(targets, sizes)[keep]
        counts[index] = np.bincount(of_posting, minlength=len(merged))
        new_row = np.cumsum(kept) - 1 + base
        base += int(kept.sum())
        staying.append((of_posting, new_row, keep))
    totals = counts.sum(axis=0)
    occurring = totals > 0
    offsets = np.concatenate([[0], np.cumsum(totals)]).astype(np.int64)
    rows = np.empty(int(offsets[-1]), np.uint32)
    weights = np.empty(int(offsets[-1]), np.float32)
    before = offsets[:-1].copy()
    for index, (of_posting, new_row, keep) in enumerate(staying):
        # postings of a term stand together, so a posting's place is its term's start plus its number there
        own_starts = np.cumsum(counts[index]) - counts[index]
        places = np.arange(len(of_posting)) + (before - own_starts)[of_posting]
        rows[places] = new_row[segments[index].rows[keep]]
        weights[places] = segments[index].weights[keep]
        before += counts[index]
    text, text_offsets = run_together([name for name, there in zip(merged, occurring, strict=True) if there])
    kept_offsets = np.concatenate([offsets[:-1][occurring], offsets[-1:]]).astype(np.uint64)
    return Postings(text, text_offsets, kept_offsets, rows, weights)


def _names(postings: Postings) -> list[bytes]:
    text = postings.terms_text.tobytes()
    offsets = postings.terms_offsets.tolist()
    return [text[start:end] for start, end in pairwise(offsets)]
