"""The approximate path of dense search. The only module that touches hnswlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mrag_cli.ground.files import digest_of
from mrag_cli.parts.store.layout import GRAPH, MARKERS
from mrag_cli.parts.store.manifest import FileEntry

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from mrag_cli.parts.store.disk import Disk
    from mrag_cli.parts.store.segment import Segment
    from mrag_cli.parts.store.snapshot import Snapshot

SMALLEST_GRAPH = 50_000
"""Keys below which exact search takes less than 7 ms; a graph of any size takes thousands of questions to
earn the time of its building (`tests/benchmarks/index.py`)."""
DEFAULT_EF = 200
"""hnswlib's search width where none is asked for."""
_LINKS = 16
_EF_CONSTRUCTION = 200
_SEED = 100
_BLOCK = 1 << 14
"""Vectors that are added at a time."""


def write_graph(disk: Disk, path: Path, vectors: NDArray[Any], threads: int) -> FileEntry | None:
    """Build and write the graph of ``vectors``, (keys, dimension); None when there are too few.

    One thread and a fixed seed give the same bytes every time; several threads do not.
    """
    if len(vectors) < SMALLEST_GRAPH:
        return None
    import hnswlib

    graph = hnswlib.Index(space="ip", dim=vectors.shape[1])
    graph.init_index(len(vectors), M=_LINKS, ef_construction=_EF_CONSTRUCTION, random_seed=_SEED)
    for start in range(0, len(vectors), _BLOCK):
        block = np.asarray(vectors[start : start + _BLOCK], np.float32)
        graph.add_items(block, np.arange(start, start + len(block)), num_threads=threads)
    disk.write_by(path, graph.save_index)
    with path.open("rb") as file:
        disk.sync(file)
    return FileEntry(path.stat().st_size, digest_of(path))


class Graphs:
    """The graphs of a snapshot, each loaded when it is first needed and kept.

    Args:
        snapshot: the open index, with vectors.
        ef: hnswlib's search width; at least as many as are asked for are used.
        threads: for searching.
    """

    def __init__(self, snapshot: Snapshot, ef: int, threads: int) -> None:
        self._segments = snapshot.segments
        self._dimension = snapshot.manifest.embedder.dimension if snapshot.manifest.embedder else 0
        self._ef = ef
        self._threads = threads
        self._loaded: dict[int, Any] = {}

    def nearest(self, vectors: NDArray[np.float32], count: int) -> list[NDArray[np.int64] | None]:
        """Return about the nearest keys of each question in each segment.

        Args:
            vectors: float32, (questions, dimension), of unit length.
            count: how many live markers each answer should have; more keys are asked for where some are
                dead or share a marker.

        Returns:
            For each segment int64, (questions, keys found), or None where it has no graph or hnswlib cannot
            find that many.

        Raises:
            IndexCorrupt: a graph is not what was written.
        """
        return [self._search(number, vectors, count) for number in range(len(self._segments))]

    def _search(self, number: int, vectors: NDArray[np.float32], count: int) -> NDArray[np.int64] | None:
        entry = self._segments[number].entry
        graph = self._graph(number)
        if graph is None or not entry.live(MARKERS):
            return None
        wanted = min(entry.rows.keys, -(-count * entry.rows.keys // entry.live(MARKERS)))
        graph.set_ef(max(self._ef, wanted))
        try:
            rows, _ = graph.knn_query(vectors, k=wanted, num_threads=self._threads)
        except RuntimeError:  # too few are within reach
            return None
        found: NDArray[np.int64] = rows.astype(np.int64)
        return found

    def _graph(self, number: int) -> Any:
        if number not in self._loaded:
            self._loaded[number] = self._load(self._segments[number])
        return self._loaded[number]

    def _load(self, segment: Segment) -> Any:
        """Load a graph whose bytes were checked: hnswlib reads a damaged one without a word, or crashes."""
        if GRAPH not in segment.entry.files:
            return None
        import hnswlib

        path = segment.folder / GRAPH
        try:
            if digest_of(path) != segment.entry.files[GRAPH].sha256:
                raise segment.corrupt(GRAPH, "not the bytes that were written")
            graph = hnswlib.Index(space="ip", dim=self._dimension)
            graph.load_index(str(path), max_elements=segment.entry.rows.keys)
        except (FileNotFoundError, RuntimeError):  # a commit has removed it since
            return None
        return graph
