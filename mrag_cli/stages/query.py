"""A question -> ranked keys -> the values that fit into the budget."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mrag_cli.ground.errors import UsageError
from mrag_cli.parts.costs import costs
from mrag_cli.parts.filters import Filters
from mrag_cli.parts.packing import Evidence, Packed, Sealed, pack
from mrag_cli.parts.pages import QuestionPages, refined
from mrag_cli.parts.ranking import Ranked, Scale, products_of, rank_dense, rank_hybrid, rank_lexical
from mrag_cli.parts.refine import Steps
from mrag_cli.parts.store.graph import Graphs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from mrag_cli.parts.ranking import Masks, Near
    from mrag_cli.parts.store.snapshot import Place, Snapshot
    from mrag_cli.records.models import Document, Marker

DEFAULT_BUDGET = 640
_LEAST_CONSIDERED = 100
_TOKENS_A_HIT = 4
_LEAST_LISTED = 10
_REMEMBERED = 1 << 10
"""Records of each kind that are kept as read."""


class QuerySettings(NamedTuple):
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
        ef: search width of hnswlib's graphs, where an index has some; None for exact search.
        threads: for searching the graphs for many questions at a time.
        steps: which refinements of the ranking are on; None for the paper's plan, the keys' scores alone.
    """

    budget: int = DEFAULT_BUDGET
    retriever: str | None = None
    fusion: str = "sum"
    order: str = "similarity"
    strict_prefix: bool = False
    source: bool = False
    considered: int | None = None
    filters: Filters = Filters()
    ef: int | None = None
    threads: int = 1
    steps: Steps | None = Steps()


class Hit(NamedTuple):
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


class QueryResult(NamedTuple):
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
        embed: returns a vector of unit length for each question, float32, (questions, dimension); called
            only for dense and hybrid ranking.

    Raises:
        UsageError: ``dense`` or ``hybrid`` was asked for, but the index has no vectors.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        settings: QuerySettings,
        embed: Callable[[Sequence[str]], NDArray[np.float32]],
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
        self._count = settings.considered or max(_LEAST_CONSIDERED, settings.budget // _TOKENS_A_HIT)
        self._graphs = Graphs(snapshot, settings.ef, settings.threads) if settings.ef else None
        # a record is wanted by the packing and again by the list of hits, a document by most of its markers
        self._marker = lru_cache(maxsize=_REMEMBERED)(self._read_marker)
        self._document = lru_cache(maxsize=_REMEMBERED)(self._read_document)

    def answer(self, question: str) -> QueryResult:
        """Return the context for a question; nothing found gives an empty one.

        Raises:
            ModelError: the embedder failed.
            IndexCorrupt: a record cannot be read.
        """
        return self.answers([question])[0]

    def answers(self, questions: Sequence[str]) -> list[QueryResult]:
        """Return the context for each of some questions, which are embedded and searched for together."""
        return [
            self._packed(question, ranking)
            for question, ranking in zip(questions, self._rankings(questions), strict=True)
        ]

    def _packed(self, question: str, ranking: Sequence[Ranked]) -> QueryResult:
        settings = self._settings
        packed = pack(
            self._evidence(ranking),
            settings.budget,
            strict_prefix=settings.strict_prefix,
            order=settings.order,
        )
        last = max((rank for rank, reason in packed.reasons.items() if reason == "packed"), default=0)
        listed = ranking[: settings.considered or max(last, _LEAST_LISTED)]
        hits = tuple(
            Hit(
                rank,
                ranked,
                self._marker(ranked.place),
                self._document_of(ranked.place),
                packed.reasons.get(rank, self._unconsidered),
            )
            for rank, ranked in enumerate(listed, 1)
        )
        generation = self._snapshot.manifest.generation
        return QueryResult(question, self._retriever, settings.budget, generation, packed, hits)

    @property
    def _unconsidered(self) -> str:
        if self._settings.source and not self._settings.strict_prefix:
            return "its units are not in the index"
        return "packing had stopped before it"

    def _rankings(self, questions: Sequence[str]) -> Iterator[Sequence[Ranked]]:
        asked = [question for question in questions if question.strip()]
        if not self._snapshot.live_markers or not asked:
            yield from ([] for _ in questions)
            return
        if self._retriever == "bm25":
            for question in questions:
                products = products_of(self._snapshot, question)
                ranking = rank_lexical(self._snapshot, question, self._count, self._masks, products)
                yield self._refined(ranking, question, products, Scale(1, 0), None)
            return
        vectors = self._embed(asked)
        near = self._graphs.nearest(vectors, self._count) if self._graphs else None
        places = iter(range(len(asked)))
        for question in questions:
            if not question.strip():
                yield []
                continue
            number = next(places)
            found = [rows[number] if rows is not None else None for rows in near] if near else None
            yield self._rank(question, vectors[number], found)

    def _rank(self, question: str, vector: NDArray[np.float32], near: Near | None) -> Sequence[Ranked]:
        snapshot, masks, count = self._snapshot, self._masks, self._count
        products = products_of(snapshot, question)
        if self._retriever == "dense":
            ranking, scale = rank_dense(snapshot, vector, count, masks, near, products), Scale(0, 1)
        else:
            fusion = self._settings.fusion
            ranking, scale = rank_hybrid(
                snapshot, question, vector, count, masks, fusion=fusion, near=near, products=products
            )
        return self._refined(ranking, question, products, scale, vector)

    def _refined(
        self,
        ranking: list[Ranked],
        question: str,
        products: Sequence[str],
        scale: Scale,
        vector: NDArray[np.float32] | None,
    ) -> Sequence[Ranked]:
        steps = self._settings.steps
        if steps is None:
            return ranking
        pages = QuestionPages(self._snapshot, question, scale, vector, self._masks, products)
        return refined(ranking, question, pages, steps, self._count)

    def _read_marker(self, place: Place) -> Marker:
        return self._snapshot.segments[place.segment].marker(place.row)

    def _read_document(self, segment: int, row: int) -> Document:
        return self._snapshot.segments[segment].document(row)

    def _document_of(self, place: Place) -> Document:
        return self._document(place.segment, self._snapshot.segments[place.segment].document_of(place.row))

    def _evidence(self, ranking: Sequence[Ranked]) -> Iterator[Evidence | Sealed]:
        if self._settings.source:
            for rank, ranked in enumerate(ranking, 1):
                yield from self._units(rank, ranked.place)
        else:
            counted = self._counted([ranked.place for ranked in ranking])
            for rank, (ranked, counts) in enumerate(zip(ranking, counted, strict=True), 1):
                yield self._sealed(rank, ranked.place, *counts)

    def _counted(self, places: Sequence[Place]) -> list[list[int]]:
        """Return the tokens of each marker's value, what it costs, and what its header does."""
        found = np.zeros((len(places), 3), np.int64)
        numbers, rows = np.array(places, np.int64).reshape(-1, 2).T
        for number, segment in enumerate(self._snapshot.segments):
            own = numbers == number
            for column, name in enumerate(("tokens", "costs", "headers")):
                found[own, column] = segment.array(f"markers.{name}")[rows[own]]
        counts: list[list[int]] = found.tolist()
        return counts

    def _sealed(self, rank: int, place: Place, tokens: int, cost: int, header_cost: int) -> Sealed:
        def opened() -> Evidence:
            marker = self._marker(place)
            position = (*marker.pointers[:1], place.row)
            text, header = marker.value.strip(), marker.header.strip()
            return Evidence(rank, marker.doc, position, text, tokens, cost, header, header_cost)

        return Sealed(rank, tokens, cost, opened)

    def _units(self, rank: int, place: Place) -> Iterator[Evidence]:
        marker = self._marker(place)
        segment = self._snapshot.segments[place.segment]
        document = segment.document_of(place.row)
        first, end = (int(number) for number in segment.first_units[document : document + 2])
        for pointer in marker.pointers:
            unit_row = first + pointer - 1
            if not first <= unit_row < end:  # the stream had the markers, but not the units
                continue
            text = segment.unit(unit_row).text.strip()
            (tokens,), (cost,) = costs([text])
            yield Evidence(rank, marker.doc, (pointer,), text, tokens, cost)


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
        record["explain"] = {
            "bm25": hit.ranked.lexical,
            "cosine": hit.ranked.dense,
            "refinements": hit.ranked.reasons,
            "packing": hit.reason,
        }
    return record
