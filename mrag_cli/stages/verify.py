"""Whether every byte of an index is as it was written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mrag_cli.ground.files import digest_of
from mrag_cli.parts.store.layout import SEGMENTS
from mrag_cli.parts.store.manifest import read_manifest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mrag_cli.parts.store.manifest import Manifest


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
        path = directory / SEGMENTS / name
        if path.is_symlink() or path.parent.is_symlink():
            yield name, "a symbolic link where a file was written"
            continue
        try:
            found = path.stat().st_size
            if found != size:
                yield name, f"{found} bytes where {size} were written"
            else:
                yield name, None if digest_of(path) == sha256 else "not the bytes that were written"
        except OSError as error:
            yield name, "missing" if isinstance(error, FileNotFoundError) else str(error.strerror)
