"""The systems of ``mrag eval``: the other commands' stages, put together."""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mrag_cli.ground.errors import UsageError
from mrag_cli.parts import tokens
from mrag_cli.parts.embedders import checked as same_embedder
from mrag_cli.parts.evaluation.ranking_metrics import DEEPEST, MarkerWords
from mrag_cli.parts.evaluation.scratch import UnsyncedDisk
from mrag_cli.parts.evaluation.systems import Found, OpenIndex, Spent, System
from mrag_cli.parts.filters import Filters
from mrag_cli.parts.refine import Steps
from mrag_cli.parts.store.manifest import LexicalSettings
from mrag_cli.parts.store.segment_writer import SegmentSettings
from mrag_cli.parts.store.snapshot import Snapshot
from mrag_cli.records.models import DocumentGroup
from mrag_cli.records.stream import read_stream
from mrag_cli.stages.index import IndexSettings, build_index
from mrag_cli.stages.query import Query, QuerySettings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from mrag_cli.ground.report import Reporter
    from mrag_cli.parts.evaluation.systems import Collection, Context, Plan
    from mrag_cli.parts.evaluation.vectors import KeptVectors
    from mrag_cli.parts.sources import Source

    MakeGroups = Callable[[Sequence[Source]], Iterator[DocumentGroup]]

WINDOW = 128
"""Tokens of the chunk baselines' windows, which is also the unit that budgets are multiples of."""


@dataclass(frozen=True, slots=True)
class Maker:
    """Turns documents into markers.

    Attributes:
        groups: documents to documents with markers, in order.
        settings: all that the markers depend on.
        spent: returns what the calls to a model took since it was last asked.
        refined: whether its index is asked as `mrag query` asks, rather than by the paper's plan.
        order: the only order its contexts are laid out in; None for any.
    """

    groups: MakeGroups
    settings: Mapping[str, object]
    spent: Callable[[], Spent] = Spent
    refined: bool = False
    order: str | None = None

    def asked(self, refined: bool | None) -> Maker:
        """Return the same, asked with or without the refinements; None leaves it as it is."""
        return self if refined is None else replace(self, refined=refined)


@dataclass(slots=True)
class _Shelf:
    """The markers of the documents of one data set, made once; mutable, because it is refilled."""

    groups: dict[str, DocumentGroup] = field(default_factory=dict)


def made(name: str, maker: Maker, embedder: KeptVectors | None, reporter: Reporter) -> System:
    """Return a system that makes markers and indexes them for as long as it is asked.

    Args:
        name: as it is called in tables.
        maker: makes the markers.
        embedder: of keys and questions; None for BM25 alone.
        reporter: told what the stages have to say.
    """
    shelf = _Shelf()

    def prepare(contexts: Sequence[Context]) -> Spent:
        started = time.perf_counter()
        shelf.groups = {}
        sources = [context.source for context in contexts if context.source is not None]
        for source, group in zip(sources, maker.groups(sources), strict=True):
            shelf.groups[source.doc] = group
        spent = maker.spent()
        spent.seconds = time.perf_counter() - started
        return spent

    @contextmanager
    def opened(collection: Collection) -> Iterator[OpenIndex]:
        docs = [context.source.doc for context in collection.contexts if context.source is not None]
        groups = [shelf.groups[doc] for doc in docs]
        with _indexed(groups, collection, embedder, reporter, refined=maker.refined) as index:
            yield index

    settings = {**maker.settings, "refined": maker.refined, "embedder": embedder.name if embedder else None}
    return System(name, settings, opened, prepare, order=maker.order)


def of_stream(
    name: str,
    path: Path,
    checked: Callable[[Iterable[DocumentGroup]], Iterator[DocumentGroup]],
    embedder: KeptVectors | None,
    reporter: Reporter,
    *,
    refined: bool,
) -> System:
    """Return a system that indexes the markers of a stream.

    Args:
        name: as it is called in tables.
        path: the stream.
        checked: validates documents.
        embedder: of keys and questions; None for BM25 alone.
        reporter: told what the stages have to say.
        refined: ask as `mrag query` asks, rather than by the paper's plan.

    Raises:
        UsageError: the stream cannot be read.
        InputError: it is malformed.
    """
    from mrag_cli.ground.files import digest_of

    try:
        with path.open("rb") as file:
            parts = read_stream(file, str(path), reporter, check_pointers=False)
            groups = {
                group.document.doc: group
                for group in checked(part for part in parts if isinstance(part, DocumentGroup))
            }
        digest = digest_of(path)
    except OSError as error:
        raise UsageError(f"--system {name}={path} cannot be read: {error.strerror or error}") from None

    @contextmanager
    def opened(collection: Collection) -> Iterator[OpenIndex]:
        wanted = _held(collection, groups)
        with _indexed(
            [groups[doc] for doc in wanted], collection, embedder, reporter, refined=refined
        ) as index:
            yield replace(index, docs=frozenset(wanted))

    settings = {"stream": digest, "refined": refined, "embedder": embedder.name if embedder else None}
    return System(name, settings, opened, lambda _contexts: Spent())


def ready(name: str, directory: Path, embedder: KeptVectors | None, *, refined: bool) -> System:
    """Return a system that asks an index that is there already.

    Where a data set is asked document by document, only the question's own document is let through; BM25's
    statistics stay those of the whole index.

    Args:
        name: as it is called in tables.
        directory: the index.
        embedder: of the questions; it must be the index's own.
        refined: ask as `mrag query` asks, rather than by the paper's plan.

    Raises:
        IndexMissing, IndexUnsupported, IndexCorrupt: it cannot be opened, or has another embedder.
    """
    snapshot = Snapshot.open(directory)
    manifest = snapshot.manifest
    if embedder is not None and manifest.embedder is not None:
        same_embedder(embedder.name, manifest.embedder.name)
    words = MarkerWords()
    docs: set[str] = set()
    for segment in snapshot.segments:
        firsts = segment.first_markers
        for row in segment.live_document_rows().tolist():
            document = segment.document(row)
            markers = tuple(segment.marker(at) for at in range(int(firsts[row]), int(firsts[row + 1])))
            words.add(DocumentGroup(document, (), markers))
            docs.add(document.doc)

    @contextmanager
    def opened(collection: Collection) -> Iterator[OpenIndex]:
        wanted = _held(collection, docs)
        filters = Filters() if collection.shared else Filters(tuple(escape(doc) for doc in wanted))
        ask = _asker(snapshot, embedder, refined=refined, filters=filters)
        yield OpenIndex(ask, Spent(), words, frozenset(wanted))

    entries = [(segment.name, sorted(map(repr, segment.files.items()))) for segment in manifest.segments]
    settings = {
        "index": [str(directory.resolve()), manifest.generation, repr(entries)],
        "refined": refined,
        "embedder": embedder.name if embedder else None,
    }
    return System(
        name,
        settings,
        opened,
        lambda _contexts: Spent(markers=snapshot.live_markers, documents=len(docs)),
        retrievers=None if manifest.embedder else ("bm25",),
        drawable=False,
    )


def _held(collection: Collection, docs: Iterable[str]) -> list[str]:
    """Return the ids under which ``docs`` holds documents of a collection."""
    known = set(docs)
    found = (next((name for name in context.names if name in known), None) for context in collection.contexts)
    return [doc for doc in found if doc is not None]


@contextmanager
def _indexed(
    groups: Sequence[DocumentGroup],
    collection: Collection,
    embedder: KeptVectors | None,
    reporter: Reporter,
    *,
    refined: bool,
) -> Iterator[OpenIndex]:
    """Index documents in a temporary folder, for as long as the block runs."""
    words = MarkerWords(collection.borders)
    for group in groups:
        words.add(group)
    segment = SegmentSettings(LexicalSettings(), embedder, derive_pivot=True)
    with tempfile.TemporaryDirectory(prefix="mrag-eval-") as folder:
        directory = Path(folder) / "index"
        started = time.perf_counter()
        build_index(groups, directory, IndexSettings(segment), reporter, disk=UnsyncedDisk())
        seconds = time.perf_counter() - started
        snapshot = Snapshot.open(directory)
        spent = _size(groups)
        spent.seconds = seconds
        markers = tuple(marker for group in groups for marker in group.markers)
        yield OpenIndex(_asker(snapshot, embedder, refined=refined), spent, words, markers=markers)


def _size(groups: Sequence[DocumentGroup]) -> Spent:
    markers = [marker for group in groups for marker in group.markers]
    values = [marker.tokens for marker in markers if marker.tokens is not None]
    keys = tokens.counts([marker.key for marker in markers])
    return Spent(
        markers=len(markers),
        documents=len(groups),
        keys=dict(Counter(keys)),
        values=dict(Counter(values)),
    )


def _asker(
    snapshot: Snapshot, embedder: KeptVectors | None, *, refined: bool, filters: Filters | None = None
) -> Callable[[str, Plan], Found]:
    vectors: dict[str, NDArray[np.float32]] = {}
    queries: dict[Plan, Query] = {}

    def vectors_of(questions: Sequence[str]) -> NDArray[np.float32]:
        return np.stack([vectors[question] for question in questions])

    def ask(question: str, plan: Plan) -> Found:
        query = queries.get(plan)
        if query is None:
            settings = query_settings(plan, refined=refined, filters=filters)
            query = queries[plan] = Query(snapshot, settings, vectors_of)
        if plan.retriever != "bm25" and embedder is not None:
            vectors.clear()
            vectors[question] = embedder.embed([question])[0]
        started = time.perf_counter()
        result = query.answer(question)
        seconds = time.perf_counter() - started
        return Found(result.packed, tuple(hit.marker for hit in result.hits[:DEEPEST]), seconds)

    return ask


def query_settings(plan: Plan, *, refined: bool, filters: Filters | None = None) -> QuerySettings:
    """Return how a question is asked by a plan.

    The paper's plan takes values until the first that does not fit, and counts their own tokens only, so that
    three windows of 128 tokens fill 384: the separators between them are not charged, nor the token that a
    window may gain when the space before it goes.
    """
    budget = plan.budget if refined else plan.budget + 2 * (plan.budget // WINDOW)
    return QuerySettings(
        budget=budget,
        retriever=plan.retriever,
        order=plan.order,
        strict_prefix=not refined,
        steps=Steps() if refined else None,
        filters=filters or Filters(),
    )
