"""A question -> ranked keys -> the values that fit into the budget."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mrag_cli.ground.errors import UsageError
from mrag_cli.parts.filters import Filters
from mrag_cli.parts.packing import Evidence, Packed, pack
from mrag_cli.parts.ranking import Ranked, rank_dense, rank_hybrid, rank_lexical

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from mrag_cli.parts.ranking import Masks
    from mrag_cli.parts.store.snapshot import Snapshot
    from mrag_cli.records.models import Document, Marker

DEFAULT_BUDGET = 640
_LEAST_CONSIDERED = 100
_TOKENS_A_HIT = 4
_LEAST_LISTED = 10


@dataclass(frozen=True, slots=True)
class QuerySettings:
    """How a question is answered.

    Attributes:
        budget: in tokens; the context never has more.
        retriever: ``bm25``, ``dense`` or ``hybrid``; None for hybrid where the index has vectors, else bm25.
        fusion: of ``hybrid``: ``sum`` or ``rrf``.
        order: of the context: ``similarity`` or ``position``.
        strict_prefix: stop packing at the first value that does not fit (Eq. 13).
        source: pack the units' own words in place of the values.
        considered: how many hits are considered; None for as many as the budget could hold.
        filters: which documents may be used.
    """

    budget: int = DEFAULT_BUDGET
    retriever: str | None = None
    fusion: str = "sum"
    order: str = "similarity"
    strict_prefix: bool = False
    source: bool = False
    considered: int | None = None
    filters: Filters = field(default_factory=Filters)


@dataclass(frozen=True, slots=True)
class Hit:
    """A ranked marker with what became of it."""

    rank: int
    ranked: Ranked
    marker: Marker
    document: Document
    reason: str

    @property
    def packed(self) -> bool:
        """Whether it is in the context."""
        return self.reason == "packed"


@dataclass(frozen=True, slots=True)
class QueryResult:
    """A packed context, and the hits it was packed from, best first.

    Hits that came after the last packed one are left out, but for the first ten.
    """

    question: str
    retriever: str
    budget: int
    generation: int
    packed: Packed
    hits: tuple[Hit, ...]


class Query:
    """Answers questions from one snapshot.

    Args:
        snapshot: the open index.
        settings: how.
        embed: returns the question's vector, float32, (dimension,), of unit length; called only for dense
            and hybrid ranking.

    Raises:
        UsageError: ``dense`` or ``hybrid`` was asked for, but the index has no vectors.
    """

    def __init__(
        self, snapshot: Snapshot, settings: QuerySettings, embed: Callable[[str], NDArray[np.float32]]
    ) -> None:
        dense = snapshot.manifest.embedder is not None
        self._snapshot = snapshot
        self._settings = settings
        self._embed = embed
        self._retriever = settings.retriever or ("hybrid" if dense else "bm25")
        if self._retriever != "bm25" and not dense:
            raise UsageError(
                f"--retriever {self._retriever}: {snapshot.directory} has no vectors; "
                "build it with --embedder"
            )
        self._masks: Masks | None = settings.filters.masks(snapshot)

    def answer(self, question: str) -> QueryResult:
        """Return the context for a question; nothing found gives an empty one.

        Raises:
            ModelError: the embedder failed.
            IndexCorrupt: a record cannot be read.
        """
        settings = self._settings
        count = settings.considered or max(_LEAST_CONSIDERED, settings.budget // _TOKENS_A_HIT)
        found = [
            (rank, ranked, self._marker(ranked)) for rank, ranked in enumerate(self._rank(question, count), 1)
        ]
        evidence = (piece for rank, ranked, marker in found for piece in self._evidence(rank, ranked, marker))
        packed = pack(evidence, settings.budget, strict_prefix=settings.strict_prefix, order=settings.order)
        last = max((rank for rank, reason in packed.reasons.items() if reason == "packed"), default=0)
        hits = tuple(
            Hit(
                rank,
                ranked,
                marker,
                self._document(ranked),
                packed.reasons.get(rank, "the budget was used up"),
            )
            for rank, ranked, marker in found[: settings.considered or max(last, _LEAST_LISTED)]
        )
        generation = self._snapshot.manifest.generation
        return QueryResult(question, self._retriever, settings.budget, generation, packed, hits)

    def _rank(self, question: str, count: int) -> Sequence[Ranked]:
        if not self._snapshot.live_markers or not question.strip():
            return []
        if self._retriever == "bm25":
            return rank_lexical(self._snapshot, question, count, self._masks)
        vector = self._embed(question)
        if self._retriever == "dense":
            return rank_dense(self._snapshot, vector, count, self._masks)
        fusion = self._settings.fusion
        return rank_hybrid(self._snapshot, question, vector, count, self._masks, fusion=fusion)

    def _marker(self, ranked: Ranked) -> Marker:
        return self._snapshot.segments[ranked.place.segment].marker(ranked.place.row)

    def _document(self, ranked: Ranked) -> Document:
        segment = self._snapshot.segments[ranked.place.segment]
        return segment.document(segment.document_of(ranked.place.row))

    def _evidence(self, rank: int, ranked: Ranked, marker: Marker) -> Iterator[Evidence]:
        segment = self._snapshot.segments[ranked.place.segment]
        row = ranked.place.row
        if not self._settings.source:
            tokens, cost, header_cost = (
                int(segment.array(f"markers.{name}")[row]) for name in ("tokens", "costs", "headers")
            )
            position = (*marker.pointers[:1], row)
            header = marker.header.strip()
            yield Evidence(
                rank, marker.doc, position, marker.value.strip(), tokens, cost, header, header_cost
            )
            return
        first = int(segment.first_units[segment.document_of(row)])
        for pointer in marker.pointers:
            unit_row = first + pointer - 1
            unit = segment.unit(unit_row)
            cost = int(segment.array("units.costs")[unit_row])
            yield Evidence(rank, marker.doc, (pointer,), unit.text.strip(), cost, cost)


def result_json(result: QueryResult, *, explain: bool = False) -> dict[str, Any]:
    """Return a result as one JSON object; ``explain`` adds each hit's scores and what became of it."""
    return {
        "question": result.question,
        "retriever": result.retriever,
        "budget": result.budget,
        "tokens": result.packed.tokens,
        "generation": result.generation,
        "context": result.packed.context,
        "hits": [_hit_json(hit, explain=explain) for hit in result.hits],
    }


def _hit_json(hit: Hit, *, explain: bool) -> dict[str, Any]:
    marker = hit.marker
    record: dict[str, Any] = {
        "rank": hit.rank,
        "score": hit.ranked.score,
        "key": marker.key,
        "value": marker.value,
        "doc": marker.doc,
        "pointers": marker.pointers,
        "title": hit.document.title,
        "origin": marker.origin,
        "tokens": marker.tokens,
        "packed": hit.packed,
    }
    if marker.header:
        record["header"] = marker.header
    if explain:
        record["explain"] = {"bm25": hit.ranked.lexical, "cosine": hit.ranked.dense, "packing": hit.reason}
    return record
