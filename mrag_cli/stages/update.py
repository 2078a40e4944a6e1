"""A stream -> the same index, with documents added, replaced and deleted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mrag_cli.parts.store.commit import Transaction, transaction
from mrag_cli.parts.store.folder_writer import FolderWriter
from mrag_cli.parts.store.layout import DOCUMENTS
from mrag_cli.parts.store.merge import due, merge_segments
from mrag_cli.parts.store.segment import Segment
from mrag_cli.parts.store.segment_writer import GroupLines, SegmentSettings, SegmentWriter
from mrag_cli.parts.store.snapshot import Snapshot
from mrag_cli.records.models import Deletion, DocumentGroup

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from mrag_cli.ground.report import Reporter
    from mrag_cli.parts.store.disk import Disk
    from mrag_cli.parts.store.segment_writer import Embedder
    from mrag_cli.parts.store.snapshot import Place
    from mrag_cli.records.models import StreamPart

_READS_A_SEARCH = 16
"""Document records that a search for one id reads in a segment, about."""


@dataclass(frozen=True, slots=True)
class UpdateSettings:
    """How an index is changed.

    Attributes:
        make_embedder: returns the embedder of a name; called only when there is something to embed.
        compact: merge all segments into one afterwards.
        threads: for hnswlib's graph.
        wait: how long to wait for another writer, in seconds.
    """

    make_embedder: Callable[[str], Embedder]
    compact: bool = False
    threads: int = 1
    wait: float = 0.0


@dataclass(frozen=True, slots=True)
class UpdateResult:
    """What an update did: documents added, replaced, deleted, unchanged, and the generation it left."""

    added: int
    replaced: int
    deleted: int
    unchanged: int
    generation: int

    @property
    def changed(self) -> bool:
        """Whether any document is another one than before."""
        return bool(self.added or self.replaced or self.deleted)


def update_index(
    parts: Iterable[StreamPart],
    directory: Path,
    settings: UpdateSettings,
    reporter: Reporter,
    *,
    disk: Disk | None = None,
) -> UpdateResult:
    """Add, replace and delete documents in one commit, then merge segments where that is due.

    A document that is in the index with the same record, units and markers is left alone; if all are,
    nothing is written. Afterwards every score equals that of an index built afresh with the same settings.

    Args:
        parts: the stream.
        directory: the index.
        settings: how.
        reporter: told of deletions of documents that are not there.
        disk: where every change goes through.

    Raises:
        IndexMissing, IndexLocked, IndexUnsupported, IndexCorrupt: see `mrag_cli.ground.errors`.
        InputError: the stream is malformed; the index stays as it was.
        ModelError: the embedder failed; the index stays as it was.
    """
    with transaction(directory, wait=settings.wait, disk=disk) as changing:
        snapshot = Snapshot.open(directory)
        update = _Update(changing, snapshot, settings)
        try:
            for part in parts:
                update.take(part, reporter)
            update.commit()
        except BaseException:
            update.abandon()
            raise
        _merge(changing, directory, settings)
        return update.result()


def _merge(changing: Transaction, directory: Path, settings: UpdateSettings) -> None:
    if settings.compact:
        snapshot = Snapshot.open(directory)
        entries = snapshot.manifest.segments
        if len(entries) > 1 or any(entry.dead for entry in entries):
            merge_segments(changing, snapshot, range(len(entries)), settings.threads)
        return
    while True:
        snapshot = Snapshot.open(directory)
        numbers = due(snapshot.manifest.segments)
        if not numbers:
            return
        merge_segments(changing, snapshot, numbers, settings.threads)


class _Update:
    """The changes of one update, collected until they are committed together."""

    def __init__(self, changing: Transaction, snapshot: Snapshot, settings: UpdateSettings) -> None:
        self._changing = changing
        self._snapshot = snapshot
        self._settings = settings
        self._writer: SegmentWriter | None = None
        self._gone: dict[str, Place] = {}
        self._written: dict[str, int] = {}
        self._withdrawn: list[int] = []
        self._unchanged = 0
        self._lookups = 0
        self._places: dict[str, Place] | None = None
        self._result: UpdateResult | None = None

    def take(self, part: StreamPart, reporter: Reporter) -> None:
        """Take one document or deletion of the stream; a later one of the same document wins."""
        if isinstance(part, DocumentGroup):
            self._add(part)
        elif isinstance(part, Deletion):
            self._delete(part.doc, reporter)

    def _find(self, doc: str) -> Place | None:
        """Return where a document is; after many single searches, from a table of all."""
        snapshot = self._snapshot
        if self._places is None:
            self._lookups += 1
            documents = sum(entry.live(DOCUMENTS) for entry in snapshot.manifest.segments)
            if self._lookups * _READS_A_SEARCH * len(snapshot.segments) < documents:
                return snapshot.find(doc)
            self._places = {
                snapshot.segments[place.segment].document_id(place.row): place
                for place in snapshot.documents()
            }
        return self._places.get(doc)

    def _add(self, group: DocumentGroup) -> None:
        doc = group.document.doc
        place = self._find(doc)
        lines = GroupLines.of(group)
        earlier = self._written.pop(doc, None)
        if earlier is not None:
            self._withdrawn.append(earlier)
        if place is not None:
            if self._snapshot.segments[place.segment].digest(place.row) == lines.digest:
                self._gone.pop(doc, None)
                self._unchanged += 1
                return
            self._gone[doc] = place
        writer = self._opened_writer()
        self._written[doc] = writer.documents
        writer.add(group, lines)

    def _delete(self, doc: str, reporter: Reporter) -> None:
        place = self._find(doc)
        row = self._written.pop(doc, None)
        if row is not None:
            self._withdrawn.append(row)
        if place is not None:
            self._gone[doc] = place
        elif row is None:
            reporter.notice(f"{doc!r} is to be deleted, but is not in the index")

    def _opened_writer(self) -> SegmentWriter:
        if self._writer is None:
            manifest = self._snapshot.manifest
            embedder = self._settings.make_embedder(manifest.embedder.name) if manifest.embedder else None
            settings = SegmentSettings(
                manifest.lexical,
                embedder,
                self._settings.threads,
                dtype=manifest.embedder.dtype if manifest.embedder else "float32",
                dimension=manifest.embedder.dimension if manifest.embedder else 0,
            )
            self._writer = SegmentWriter(self._changing.disk, self._changing.folder, settings)
        return self._writer

    def commit(self) -> None:
        """Commit what was collected, if it is anything."""
        manifest = self._snapshot.manifest
        replaced = sum(doc in self._gone for doc in self._written)
        self._result = UpdateResult(
            added=len(self._written) - replaced,
            replaced=replaced,
            deleted=len(self._gone) - replaced,
            unchanged=self._unchanged,
            generation=manifest.generation,
        )
        if not self._result.changed:
            self.abandon()
            self._changing.collect_garbage()
            return
        entries = list(manifest.segments)
        folder = FolderWriter(self._changing.disk, self._changing.folder)
        for number, segment in enumerate(self._snapshot.segments):
            rows = [place.row for place in self._gone.values() if place.segment == number]
            if rows:
                entries[number] = self._changing.mark_dead(folder, segment, rows)
        if self._writer is not None:
            entry, _, _ = self._writer.finish()
            if self._withdrawn:
                written = Segment(self._changing.folder.parent, entry, manifest.embedder)
                entry = self._changing.mark_dead(folder, written, self._withdrawn)
            entries.append(entry)
        if self._writer is None or self._withdrawn:
            folder.sync()
        self._changing.commit(entries, manifest.lexical, manifest.embedder)

    def abandon(self) -> None:
        """Stop writing."""
        if self._writer is not None:
            self._writer.abandon()

    def result(self) -> UpdateResult:
        """Return what was done; the generation is the last one committed, merges included."""
        assert self._result is not None  # noqa: S101 - commit() ran
        assert self._changing.manifest is not None  # noqa: S101 - a transaction on an existing index
        result = self._result
        return UpdateResult(
            result.added,
            result.replaced,
            result.deleted,
            result.unchanged,
            self._changing.manifest.generation,
        )
