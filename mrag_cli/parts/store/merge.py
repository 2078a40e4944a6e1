"""Merging segments, so that their number stays logarithmic and dead rows give their space back.

Size-tiered: segments whose live markers are within a factor of `_TIER` of each other form a tier; a tier
that fills up is merged into one segment. Each marker is so rewritten about once a tier, and an append of
``n`` markers costs O(n log N) amortised, never a rewrite of the big segments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mrag_cli.parts.store import lexical
from mrag_cli.parts.store.disk import written
from mrag_cli.parts.store.layout import DOCUMENTS, MARKERS, UNITS, VECTORS
from mrag_cli.parts.store.manifest import FileEntry
from mrag_cli.parts.store.segment_writer import FolderWriter, RecordsWriter, as_bytes, write_order

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from mrag_cli.parts.store.commit import Transaction
    from mrag_cli.parts.store.manifest import Manifest, SegmentEntry
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
        size = max(entry.live_markers, _SMALLEST_TIER)
        tiers.setdefault(int(np.log(size / _SMALLEST_TIER) / np.log(_TIER) + 1e-9), []).append(number)
    for _, members in sorted(tiers.items()):
        if len(members) >= _TIER:
            return members
    for number, entry in enumerate(entries):
        if entry.keys - entry.live_keys > _MOST_DEAD * entry.keys:
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
    """
    manifest = snapshot.manifest
    sources = [snapshot.segments[number] for number in numbers]
    target = FolderWriter(changing.disk, changing.folder)
    entry = _write_merged(sources, target, with_vectors=manifest.embedder is not None, threads=threads)
    rest = list(manifest.segments)
    rest[numbers[0]] = entry
    kept = [entry for number, entry in enumerate(rest) if number == numbers[0] or number not in set(numbers)]
    return changing.commit(kept, manifest.lexical, manifest.embedder)


def _write_merged(
    sources: Sequence[Segment], target: FolderWriter, *, with_vectors: bool, threads: int
) -> SegmentEntry:
    records = RecordsWriter(target)
    units_of: list[NDArray[Any]] = []
    markers_of: list[NDArray[Any]] = []
    keys_of: list[NDArray[Any]] = []
    origins: dict[str, int] = {}
    docs: list[str] = []
    for source in sources:
        rows = source.live_document_rows()
        for first, end in _runs(rows):
            _copy_lines(source, records, first, end)
        docs.extend(_ids(source, rows))
        units_of.append(np.diff(source.first_units.astype(np.int64))[rows])
        markers_of.append(np.diff(source.first_markers.astype(np.int64))[rows])
        keys_of.append(_of_live(source, np.diff(source.first_keys.astype(np.int64))))
        for origin, count in live_origins(source).items():
            origins[origin] = origins.get(origin, 0) + count
    records.close()
    write_order(target, docs)
    target.write_array("documents.units", _firsts(units_of))
    target.write_array("documents.markers", _firsts(markers_of))
    first_keys = _firsts(keys_of)
    target.write_array("markers.keys", first_keys)
    for name in ("markers.tokens", "markers.costs", "markers.headers"):
        target.write_array(name, np.concatenate([_of_live(source, source.array(name)) for source in sources]))
    target.write_array("units.costs", np.concatenate([_live_units(source) for source in sources]))
    digests = [source.array("documents.digests")[source.live_document_rows()].tobytes() for source in sources]
    target.write("documents.digests", b"".join(digests))
    kept = [_kept_keys(source) for source in sources]
    target.write_postings(lexical.merge([source.postings for source in sources], kept))
    if with_vectors:
        _merge_vectors(sources, kept, target, threads)
    return target.entry(origins, len(docs), records.rows(UNITS), records.rows(MARKERS), int(first_keys[-1]))


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
        records.add_lines(kind, source.lines(kind, int(starts[0]), int(starts[-1])), starts)


def _ids(source: Segment, rows: NDArray[np.int64]) -> Iterator[str]:
    for row in rows.tolist():
        yield source.document(row).doc


def _firsts(counts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    return np.concatenate([[0], np.cumsum(np.concatenate(counts))])


def _of_live(source: Segment, values: NDArray[Any]) -> NDArray[Any]:
    return values if source.live_markers is None else values[source.live_markers]


def _live_units(source: Segment) -> NDArray[Any]:
    live = source.live_units
    costs = source.array("units.costs")
    return costs if live is None else costs[live]


def _kept_keys(source: Segment) -> NDArray[np.bool_]:
    return np.ones(source.entry.keys, np.bool_) if source.live_keys is None else source.live_keys


def live_origins(source: Segment) -> dict[str, int]:
    """Return the number of live markers of each origin; reads the markers of dead documents only."""
    counts = dict(source.entry.origins)
    for document in source.dead_documents.tolist():
        for row in range(int(source.first_markers[document]), int(source.first_markers[document + 1])):
            counts[source.marker(row).origin] -= 1
    return {origin: count for origin, count in counts.items() if count}


def _merge_vectors(
    sources: Sequence[Segment], kept: Sequence[NDArray[np.bool_]], target: FolderWriter, threads: int
) -> None:
    path = target.folder / VECTORS
    with written(target.disk, path) as file:
        for source, keep in zip(sources, kept, strict=True):
            for first, end in _runs(np.flatnonzero(keep)):
                file.write(as_bytes(source.vectors[first:end]))
    target.files[VECTORS] = FileEntry(file.size, file.digest)
    dimension = sources[0].vectors.shape[1]
    target.add_graph(np.fromfile(path, np.float32).reshape(-1, dimension), threads)
