"""Every change an index directory undergoes goes through here, so that a test can fail any one of them."""

from __future__ import annotations

import hashlib
import os
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_BLOCK = 1 << 20


class Disk:
    """Writing, syncing, renaming and removing; the operating system's own."""

    def make_folder(self, path: Path) -> None:
        """Create a folder and its parents; one that is there already stays."""
        path.mkdir(parents=True, exist_ok=True)

    def write(self, file: IO[bytes], block: memoryview) -> None:
        """Write all of ``block`` to an unbuffered file."""
        while block:
            block = block[file.write(block) :]

    def sync(self, file: IO[bytes]) -> None:
        """Wait until the file's bytes are on the disk."""
        file.flush()
        os.fsync(file.fileno())

    def sync_folder(self, path: Path) -> None:
        """Wait until the folder's entries are on the disk."""
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def replace(self, source: Path, target: Path) -> None:
        """Put ``source`` in the place of ``target``, atomically."""
        source.replace(target)

    def remove(self, path: Path) -> None:
        """Remove a file."""
        path.unlink(missing_ok=True)

    def remove_folder(self, path: Path) -> None:
        """Remove an empty folder."""
        path.rmdir()


class WrittenFile:
    """A file being written, with its size in bytes and SHA-256 so far."""

    __slots__ = ("_buffer", "_disk", "_file", "_hash", "size")

    def __init__(self, disk: Disk, file: IO[bytes]) -> None:
        self._disk = disk
        self._file = file
        self._hash = hashlib.sha256()
        self._buffer = bytearray()
        self.size = 0

    def write(self, content: bytes | memoryview) -> None:
        """Append bytes; they reach the disk in blocks of about a mebibyte."""
        view = memoryview(content)
        self.size += len(view)
        if len(view) < _BLOCK:
            self._buffer += view
            if len(self._buffer) >= _BLOCK:
                self.flush()
            return
        self.flush()
        for start in range(0, len(view), _BLOCK):
            self._write(view[start : start + _BLOCK])

    def flush(self) -> None:
        """Hand everything appended so far to the operating system."""
        if self._buffer:
            self._write(memoryview(self._buffer))
            self._buffer = bytearray()

    def _write(self, block: memoryview) -> None:
        self._hash.update(block)
        self._disk.write(self._file, block)

    @property
    def digest(self) -> str:
        """SHA-256 of what was handed to the operating system, as hex digits."""
        return self._hash.hexdigest()


@contextmanager
def written(disk: Disk, path: Path) -> Iterator[WrittenFile]:
    """Create ``path`` for writing; when the block ends, its bytes are on the disk."""
    with path.open("xb", buffering=0) as file:
        target = WrittenFile(disk, file)
        yield target
        target.flush()
        disk.sync(file)
