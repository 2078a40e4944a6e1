"""Hit, MRR and NDCG of rankings, by ir-measures.

A marker is relevant to a question when its header and value hold at least half of the distinct content words
of one of the gold passages (stop words left out; CJK runs as overlapping pairs), and, where the question
names its document, comes from there. So what counts is what a reader would be given: a value much shorter
than the gold passage cannot be relevant, however good it is.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import Counter
from typing import TYPE_CHECKING, Any

from mrag_cli.parts.measures import content_words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mrag_cli.records.models import DocumentGroup, Marker

DEEPEST = 10
"""The deepest cutoff that can be asked for."""
_SHARE = 0.5


class MarkerWords:
    """Which words each marker holds, so that the relevant ones can be counted.

    Args:
        borders: where each of the documents that were joined into one begins in it, in code points, and its
            name; empty when documents stand alone.
    """

    def __init__(self, borders: Sequence[tuple[int, str]] = ()) -> None:
        self._starts = [start for start, _ in borders]
        self._origins = [name for _, name in borders]
        self._rows: dict[str, array[int]] = {}
        self._docs: list[str] = []
        self._known: dict[tuple[str, str, str], int] = {}

    def add(self, group: DocumentGroup) -> None:
        """Take in a document's markers."""
        spans = {unit.unit: unit.span for unit in group.units} if self._starts else {}
        for marker in group.markers:
            row = len(self._docs)
            if self._known.setdefault((marker.doc, marker.key, marker.value), row) != row:
                continue
            self._docs.append(self._origin(marker, spans))
            for word in content_words(f"{marker.header}\n{marker.value}"):
                self._rows.setdefault(word, array("I")).append(row)

    def _origin(self, marker: Marker, spans: Mapping[int, tuple[int, int]]) -> str:
        if not self._starts or not marker.pointers:
            return marker.doc
        middle = (spans[marker.pointers[0]][0] + spans[marker.pointers[-1]][1]) // 2
        return self._origins[max(0, bisect_right(self._starts, middle) - 1)]

    def row(self, marker: Marker) -> int:
        """Return the number of a marker that was taken in."""
        return self._known[marker.doc, marker.key, marker.value]

    def relevant(self, passages: Sequence[str], docs: Sequence[str] = ()) -> set[int]:
        """Return the numbers of the markers relevant to gold passages.

        Args:
            passages: the gold passages.
            docs: names of the document they must come from; none lets all pass.
        """
        found: set[int] = set()
        for passage in passages:
            words = content_words(passage)
            if not words:
                continue
            counts: Counter[int] = Counter()
            for word in words:
                counts.update(self._rows.get(word, ()))
            least = _SHARE * len(words)
            found.update(row for row, count in counts.items() if count >= least)
        return {row for row in found if self._docs[row] in docs} if docs else found


def ranking_scores(
    rankings: Mapping[str, Sequence[int]], relevant: Mapping[str, set[int]], cutoffs: Sequence[int]
) -> dict[str, dict[str, float]]:
    """Return Hit@k, MRR@k and NDCG@k of each question.

    Args:
        rankings: numbers of the ranked markers, best first, by question.
        relevant: numbers of all relevant markers, by question; a question with none scores 0.
        cutoffs: the k's.

    Returns:
        By question, the values by name, such as ``hit@10``.
    """
    import ir_measures
    from ir_measures import RR, Qrel, ScoredDoc, Success, nDCG

    named: dict[Any, str] = {}
    for k in cutoffs:
        named |= {Success @ k: f"hit@{k}", RR @ k: f"mrr@{k}", nDCG @ k: f"ndcg@{k}"}
    scores = {question: dict.fromkeys(named.values(), 0.0) for question in rankings}
    judged = [Qrel(question, str(row), 1) for question in rankings for row in sorted(relevant[question])]
    run = [
        ScoredDoc(question, str(row), float(-rank))
        for question, ranking in rankings.items()
        for rank, row in enumerate(ranking)
    ]
    if judged and run:
        for found in ir_measures.iter_calc(list(named), judged, run):
            scores[found.query_id][named[found.measure]] = float(found.value)
    return scores
