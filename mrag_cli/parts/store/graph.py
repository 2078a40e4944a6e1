"""The approximate path of dense search. The only module that touches hnswlib."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mrag_cli.ground.files import digest_of
from mrag_cli.parts.store.manifest import FileEntry

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from mrag_cli.parts.store.disk import Disk

SMALLEST_GRAPH = 50_000
"""Keys below which exact search is fast enough to make a graph pointless."""
_LINKS = 16
_EF_CONSTRUCTION = 200
_SEED = 100


def write_graph(disk: Disk, path: Path, vectors: NDArray[np.float32], threads: int) -> FileEntry | None:
    """Build and write the graph of ``vectors`` (float32, (keys, dimension)); None when there are too few.

    One thread and a fixed seed give the same bytes every time; several threads do not.
    """
    if len(vectors) < SMALLEST_GRAPH:
        return None
    import hnswlib

    graph = hnswlib.Index(space="ip", dim=vectors.shape[1])
    graph.init_index(len(vectors), M=_LINKS, ef_construction=_EF_CONSTRUCTION, random_seed=_SEED)
    graph.add_items(vectors, np.arange(len(vectors)), num_threads=threads)
    graph.save_index(str(path))
    with path.open("rb") as file:
        disk.sync(file)
    return FileEntry(path.stat().st_size, digest_of(path))


class Graph:
    """A loaded graph.

    Args:
        path: hnswlib's file, whose size and digest the caller has checked.
        dimension: of the vectors; hnswlib does not check it.
        keys: number of vectors in it.
    """

    def __init__(self, path: Path, dimension: int, keys: int) -> None:
        import hnswlib

        self._keys = keys
        self._index = hnswlib.Index(space="ip", dim=dimension)
        self._index.load_index(str(path), max_elements=keys)

    def nearest(self, vectors: NDArray[np.float32], count: int, ef: int) -> NDArray[np.int64] | None:
        """Return the rows of about the ``count`` nearest keys of each query, nearest first.

        Args:
            vectors: float32, (queries, dimension), of unit length.
            count: how many; clamped to the number of keys.
            ef: hnswlib's search width; at least ``count`` is used.

        Returns:
            int64, (queries, count), or None when hnswlib cannot find that many.
        """
        count = min(count, self._keys)
        self._index.set_ef(max(ef, count))
        try:
            rows, _ = self._index.knn_query(vectors, k=count, num_threads=1)
        except RuntimeError:
            return None
        found: NDArray[np.int64] = rows.astype(np.int64)
        return found
