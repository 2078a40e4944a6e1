"""Markers -> a new index directory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mrag_cli.ground.errors import UsageError
from mrag_cli.parts.store.commit import transaction
from mrag_cli.parts.store.manifest import EmbedderEntry
from mrag_cli.parts.store.segment_writer import SegmentSettings, SegmentWriter
from mrag_cli.records.models import Deletion, DocumentGroup

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from mrag_cli.ground.report import Reporter
    from mrag_cli.parts.store.disk import Disk
    from mrag_cli.parts.store.manifest import Manifest
    from mrag_cli.records.models import StreamPart


@dataclass(frozen=True, slots=True)
class IndexSettings:
    """How an index is made.

    Attributes:
        segment: BM25's parameters, embedder and threads.
        overwrite: an index that is there already is replaced, in one commit.
        wait: how long to wait for another writer, in seconds.
    """

    segment: SegmentSettings
    overwrite: bool = False
    wait: float = 0.0


def build_index(
    parts: Iterable[StreamPart],
    directory: Path,
    settings: IndexSettings,
    reporter: Reporter,
    *,
    disk: Disk | None = None,
) -> Manifest:
    """Build an index of a stream's markers; nothing is visible before the one commit at the end.

    Args:
        parts: the stream; an empty one gives an empty index.
        directory: where; made if it is not there.
        settings: how.
        reporter: told of documents without markers and of what does not belong into an index.
        disk: where every change goes through.

    Raises:
        UsageError: there is an index already and ``settings.overwrite`` is False, or the directory holds
            other things.
        IndexLocked: another writer is at it.
        InputError: the stream is malformed; no index is made, an older one stays.
        ModelError: the embedder failed.
    """
    with transaction(
        directory, create=True, replace_unreadable=settings.overwrite, wait=settings.wait, disk=disk
    ) as changing:
        if changing.manifest is not None and not settings.overwrite:
            raise UsageError(
                f"{directory} is an index already; `mrag update {directory}` adds to it, "
                "--overwrite replaces it"
            )
        writer = SegmentWriter(changing.disk, changing.folder, settings.segment)
        try:
            _add_all(parts, writer, reporter)
            entry, lexical, dimension = writer.finish()
        except BaseException:
            writer.abandon()
            raise
        embedder = settings.segment.embedder
        return changing.commit(
            [entry],
            lexical,
            EmbedderEntry(embedder.name, dimension, settings.segment.dtype) if embedder else None,
        )


def _add_all(parts: Iterable[StreamPart], writer: SegmentWriter, reporter: Reporter) -> None:
    bare: list[str] = []
    deletions = 0
    for part in parts:
        if isinstance(part, DocumentGroup):
            writer.add(part)
            if part.units and not part.markers:
                bare.append(part.document.doc)
        elif isinstance(part, Deletion):
            deletions += 1
    if bare:
        reporter.notice(
            f"{len(bare)} of {writer.documents} documents have no markers and cannot be found "
            f"({bare[0]!r} is the first); run the stream through `mrag extract` and `mrag validate`"
        )
    if deletions:
        reporter.notice(f"{deletions} deletions left out; only `mrag update` knows what to do with them")
