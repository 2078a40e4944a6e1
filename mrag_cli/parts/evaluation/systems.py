"""What is compared: a system opens an index over some contexts, and the index answers questions by plans."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from mrag_cli.parts.evaluation.ranking_metrics import MarkerWords
    from mrag_cli.parts.packing import Packed
    from mrag_cli.parts.sources import Source
    from mrag_cli.records.models import Marker


@dataclass(frozen=True, slots=True)
class Plan:
    """How a question is answered.

    Attributes:
        retriever: ``bm25``, ``dense`` or ``hybrid``.
        budget: tokens of the context.
        order: of the context: ``similarity`` or ``position``.
    """

    retriever: str
    budget: int
    order: str


@dataclass(frozen=True, slots=True)
class Found:
    """What a system found.

    Attributes:
        packed: the context.
        ranked: the markers, best first, `DEEPEST` of them at least where there are as many; None when the
            system ranks none.
        seconds: in process, for ranking and packing; the question's vector was there before.
    """

    packed: Packed
    ranked: tuple[Marker, ...] | None
    seconds: float


@dataclass(slots=True)
class Spent:
    """What making an index took; mutable, because it is added up.

    Attributes:
        seconds: of the wall clock, units, markers, vectors and index together.
        calls: to a language model, those answered by the cache included.
        prompt_tokens: of those calls.
        completion_tokens: of those calls.
        dollars: of those calls; None when a price is unknown.
        markers: markers indexed.
        documents: documents indexed.
        keys: how many keys have how many tokens.
        values: how many values have how many tokens.
    """

    seconds: float = 0.0
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    dollars: float | None = 0.0
    markers: int = 0
    documents: int = 0
    keys: dict[int, int] = field(default_factory=dict)
    values: dict[int, int] = field(default_factory=dict)

    def add(self, other: Spent) -> None:
        """Add what another index took."""
        self.seconds += other.seconds
        self.calls += other.calls
        self.prompt_tokens += other.prompt_tokens
        self.completion_tokens += other.completion_tokens
        known = self.dollars is not None and other.dollars is not None
        self.dollars = (self.dollars or 0.0) + (other.dollars or 0.0) if known else None
        self.markers += other.markers
        self.documents += other.documents
        for own, more in ((self.keys, other.keys), (self.values, other.values)):
            for length, times in more.items():
                own[length] = own.get(length, 0) + times


@dataclass(frozen=True, slots=True)
class Context:
    """A document that a system is given.

    Attributes:
        source: its text; None where a row only names it.
        names: ids under which an index made elsewhere may hold it.
    """

    source: Source | None
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Collection:
    """The documents of one index.

    Attributes:
        contexts: the documents.
        borders: where each of the documents that were joined into one begins in it, and its name.
        shared: whether it holds all documents of the data set.
    """

    contexts: tuple[Context, ...]
    borders: tuple[tuple[int, str], ...] = ()
    shared: bool = False


@dataclass(frozen=True, slots=True)
class OpenIndex:
    """An index that can be asked.

    Attributes:
        ask: answers a question.
        spent: what it took to make it.
        words: of its markers, to tell the relevant ones; None when the system has no markers.
        docs: the documents it holds; None for all it was given.
        markers: what it was made of; empty where that is not at hand.
    """

    ask: Callable[[str, Plan], Found]
    spent: Spent
    words: MarkerWords | None
    docs: frozenset[str] | None = None
    markers: tuple[Marker, ...] = ()


@dataclass(frozen=True, slots=True)
class System:
    """A way to cut, index and lay out documents.

    Attributes:
        name: as it is called in tables.
        settings: all that its results depend on, for telling whether a kept cell is still right.
        open: makes or opens the index of a collection, until the block ends.
        prepare: called with all documents of a data set before the first of its indexes is opened; returns
            what it took.
        order: the only order it lays its contexts out in; None for any.
        retrievers: the only retrievers it has; None for any.
        drawable: whether an open index has its markers at hand, for drawing them.
    """

    name: str
    settings: Mapping[str, object]
    open: Callable[[Collection], AbstractContextManager[OpenIndex]]
    prepare: Callable[[Sequence[Context]], Spent]
    order: str | None = None
    retrievers: Sequence[str] | None = None
    drawable: bool = True

    def plans(self, wanted: Sequence[Plan]) -> list[Plan]:
        """Return the plans among ``wanted`` that it can follow, with its own order where it has only one."""
        found = []
        for plan in wanted:
            if self.retrievers is not None and plan.retriever not in self.retrievers:
                continue
            found.append(Plan(plan.retriever, plan.budget, self.order or plan.order))
        return list(dict.fromkeys(found))
