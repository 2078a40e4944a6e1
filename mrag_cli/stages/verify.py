"""Whether every byte of an index is as it was written."""

from __future__ import annotations

import stat
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
        yield name, _wrong(directory / SEGMENTS / name, size, sha256)


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
