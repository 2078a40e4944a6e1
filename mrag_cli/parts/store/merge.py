"""Merging segments, so that their number stays logarithmic and dead rows give their space back.

Size-tiered: segments whose live markers are within a factor of `_TIER` of each other form a tier; a tier
that fills up is merged into one segment. Each marker is so rewritten about once a tier, and an append of
``n`` markers costs O(n log N) amortised, never a rewrite of the big segments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mrag_cli.parts.store import lexical
from mrag_cli.parts.store.disk import WrittenFile
from mrag_cli.parts.store.folder_writer import (
    FolderWriter,
    RecordsWriter,
    as_bytes,
    order_arrays,
    page_arrays,
    postings_arrays,
)
from mrag_cli.parts.store.layout import DOCUMENTS, MARKERS, UNITS, VECTORS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from mrag_cli.parts.store.commit import Transaction
    from mrag_cli.parts.store.manifest import EmbedderEntry, Manifest, SegmentEntry
    from mrag_cli.parts.store.segment import Segment
    from mrag_cli.parts.store.snapshot import Snapshot

_SMALLEST_TIER = 1_000
_TIER = 4
_MOST_DEAD = 1 / 3
"""Share of dead keys above which a segment is rewritten alone."""


def due(entries: Sequence[SegmentEntry]) -> list[int]:
    """Return the numbers of the segments that should be merged into one now; empty when none should."""
    tiers: dict[int, list[int]] = {}
    for number, entry in enumerate(entries):
        size = max(entry.live(MARKERS), _SMALLEST_TIER)
        tiers.setdefault(int(np.log(size / _SMALLEST_TIER) / np.log(_TIER) + 1e-9), []).append(number)
    for _, members in sorted(tiers.items()):
        if len(members) >= _TIER:
            return members
    for number, entry in enumerate(entries):
        if entry.rows.keys - entry.live("keys") > _MOST_DEAD * entry.rows.keys:
            return [number]
    return []


def merge_segments(
    changing: Transaction, snapshot: Snapshot, numbers: Sequence[int], threads: int = 1
) -> Manifest:
    """Commit a generation in which the segments ``numbers`` are one, without their dead rows.

    Scores stay what they were to the last bit: nothing in a segment depends on anything but its own keys
    and the settings in the manifest.

    Args:
        changing: the transaction.
        snapshot: what is committed, open.
        numbers: which of its segments, ascending.
        threads: for hnswlib's graph.

    Raises:
        IndexCorrupt: a file of one of the segments is not what was written; nothing was changed.
    """
    manifest = snapshot.manifest
    sources = [snapshot.segments[number] for number in numbers]
    for source in sources:
        source.check_digests()
    target = FolderWriter(changing.disk, changing.folder)
    entry = _write_merged(sources, target, manifest.embedder, threads)
    rest = list(manifest.segments)
    rest[numbers[0]] = entry
    kept = [entry for number, entry in enumerate(rest) if number == numbers[0] or number not in set(numbers)]
    return changing.commit(kept, manifest.lexical, manifest.embedder)


def _write_merged(
    sources: Sequence[Segment], target: FolderWriter, embedder: EmbedderEntry | None, threads: int
) -> SegmentEntry:
    records = RecordsWriter(target)
    origins: dict[str, int] = {}
    try:
        for source in sources:
            for first, end in _runs(source.live_document_rows()):
                _copy_lines(source, records, first, end)
            for origin, count in live_origins(source).items():
                origins[origin] = origins.get(origin, 0) + count
        records.close()
    finally:
        records.abandon()
    kept = [_kept_keys(source) for source in sources]
    rows = target.write_arrays(_arrays(sources, records, kept), sum(int(keep.sum()) for keep in kept))
    if embedder:
        _merge_vectors(sources, kept, target)
        target.add_graph(embedder.dimension, embedder.dtype, threads)
    return target.entry(rows, origins)


def _arrays(
    sources: Sequence[Segment], records: RecordsWriter, kept: Sequence[NDArray[np.bool_]]
) -> Iterator[tuple[str, Any]]:
    live = [source.live_document_rows() for source in sources]
    yield from records.arrays()
    docs = [
        source.document_id(row) for source, rows in zip(sources, live, strict=True) for row in rows.tolist()
    ]
    yield from order_arrays(docs)
    digests = [
        source.array("documents.digests")[rows].tobytes() for source, rows in zip(sources, live, strict=True)
    ]
    yield "documents.digests", np.frombuffer(b"".join(digests), "|V16")
    for name in ("documents.units", "documents.markers"):
        sizes = [_sizes(source, name)[rows] for source, rows in zip(sources, live, strict=True)]
        yield name, _firsts(sizes)
    sizes = [_those(_sizes(source, "markers.keys"), source.live_markers) for source in sources]
    yield "markers.keys", _firsts(sizes)
    for name in ("markers.tokens", "markers.costs", "markers.headers", "markers.contexts"):
        yield name, np.concatenate([_those(source.array(name), source.live_markers) for source in sources])
    pages = [_those(source.array("markers.pages"), source.live_markers) for source in sources]
    yield from page_arrays(np.concatenate(pages))
    yield from postings_arrays(lexical.merge([source.postings for source in sources], kept))


def _runs(rows: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Yield ``(first, end)`` for each run of consecutive rows."""
    if not len(rows):
        return
    breaks = np.flatnonzero(np.diff(rows) != 1) + 1
    for run in np.split(rows, breaks):
        yield int(run[0]), int(run[-1]) + 1


def _copy_lines(source: Segment, records: RecordsWriter, first: int, end: int) -> None:
    """Copy the lines of the documents ``first`` to ``end``, with their units and markers, as they are."""
    ranges = {
        DOCUMENTS: (first, end),
        UNITS: (int(source.first_units[first]), int(source.first_units[end])),
        MARKERS: (int(source.first_markers[first]), int(source.first_markers[end])),
    }
    for kind, (start, stop) in ranges.items():
        starts = source.array(f"{kind}.offsets")[start : stop + 1]
        lines = source.content(f"{kind}.jsonl")[int(starts[0]) : int(starts[-1])]
        records.add_together(kind, lines, starts)


def _sizes(source: Segment, name: str) -> NDArray[Any]:
    return np.diff(source.array(name).astype(np.int64))


def _firsts(sizes: Sequence[NDArray[Any]]) -> NDArray[Any]:
    return np.concatenate([[0], np.cumsum(np.concatenate(sizes))])


def _those(values: NDArray[Any], live: NDArray[np.bool_] | None) -> NDArray[Any]:
    return values if live is None else values[live]


def _kept_keys(source: Segment) -> NDArray[np.bool_]:
    return np.ones(source.entry.rows.keys, np.bool_) if source.live_keys is None else source.live_keys


def live_origins(source: Segment) -> dict[str, int]:
    """Return the number of live markers of each origin; reads the markers of dead documents only."""
    counts = dict(source.entry.origins)
    for document in source.dead_documents.tolist():
        for row in range(int(source.first_markers[document]), int(source.first_markers[document + 1])):
            origin = source.marker(row).origin
            counts[origin] = counts.get(origin, 0) - 1
    return {origin: count for origin, count in counts.items() if count}


def _merge_vectors(
    sources: Sequence[Segment], kept: Sequence[NDArray[np.bool_]], target: FolderWriter
) -> None:
    file = WrittenFile(target.disk, target.folder / VECTORS)
    try:
        for source, keep in zip(sources, kept, strict=True):
            for first, end in _runs(np.flatnonzero(keep)):
                file.write(as_bytes(source.vectors[first:end]))
        target.add(VECTORS, file)
    finally:
        file.abandon()
