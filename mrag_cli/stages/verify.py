"""Whether every byte of an index is as it was written."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

from mrag_cli.ground.files import digest_of
from mrag_cli.parts.ranking import rank_dense
from mrag_cli.parts.store.graph import Graphs
from mrag_cli.parts.store.layout import GRAPH, SEGMENTS
from mrag_cli.parts.store.manifest import read_manifest
from mrag_cli.parts.store.snapshot import Snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mrag_cli.parts.store.manifest import Manifest

_NEAREST = 10


def named_files(manifest: Manifest) -> Iterator[tuple[str, int, str]]:
    """Yield name below ``segments/``, size in bytes and SHA-256 of every file that a manifest names."""
    for entry in manifest.segments:
        for name, file in sorted(entry.files.items()):
            yield f"{entry.name}/{name}", file.size, file.sha256
        if entry.dead:
            yield entry.dead.name, entry.dead.size, entry.dead.sha256


def verify(directory: Path) -> Iterator[tuple[str, str | None]]:
    """Check every file of the index in ``directory`` against its digest.

    Yields:
        Name of the file, and what is wrong with it or None.

    Raises:
        IndexMissing, IndexUnsupported, IndexCorrupt: the manifest cannot be read.
    """
    manifest = read_manifest(directory)
    for name, size, sha256 in named_files(manifest):
        yield name, _wrong(directory / SEGMENTS / name, size, sha256)


def recall(directory: Path, ef: int, sample: int = 200) -> float | None:
    """Return the share of the ten nearest markers of some keys that the graphs find, too.

    The keys are spread evenly over the index; each one's own vector is the question.

    Args:
        directory: the index.
        ef: hnswlib's search width.
        sample: how many keys.

    Returns:
        Recall at 10, from 0 to 1, or None where the index has no graph.

    Raises:
        IndexMissing, IndexUnsupported, IndexCorrupt: the index cannot be read.
    """
    import numpy as np

    snapshot = Snapshot.open(directory)
    if not any(GRAPH in entry.files for entry in snapshot.manifest.segments):
        return None
    graphs = Graphs(snapshot, ef, 1)
    shares = []
    for segment in snapshot.segments:
        keys = segment.entry.rows.keys
        rows = np.arange(0, keys, max(1, snapshot.live_keys // sample))
        vectors = segment.vectors[rows].astype(np.float32)
        near = graphs.nearest(vectors, _NEAREST)
        for number, vector in enumerate(vectors):
            exact = {found.place for found in rank_dense(snapshot, vector, _NEAREST)}
            keys_near = [None if found is None else found[number] for found in near]
            found = {found.place for found in rank_dense(snapshot, vector, _NEAREST, None, keys_near)}
            shares.append(len(exact & found) / len(exact))
    return float(np.mean(shares))


def _wrong(path: Path, size: int, sha256: str) -> str | None:
    try:
        for place in (path.parent.parent, path.parent, path):
            if place.is_symlink():
                return f"{place} is a symbolic link"
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            return "no regular file"
        if status.st_size != size:
            return f"{status.st_size} bytes where {size} were written"
        return None if digest_of(path) == sha256 else "not the bytes that were written"
    except FileNotFoundError:
        return "missing"
    except OSError as error:
        return str(error.strerror)
