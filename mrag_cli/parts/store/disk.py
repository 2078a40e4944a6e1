"""Every change an index directory undergoes goes through here, so that a test can fail any one of them."""

from __future__ import annotations

import hashlib
import os
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_BLOCK = 1 << 20


class Disk:
    """Writing, syncing, renaming and removing; the operating system's own."""

    def make_folder(self, path: Path) -> None:
        """Create a folder and its parents, each on the disk before the next; one that is there stays."""
        if not path.is_dir():
            self.make_folder(path.parent)
            path.mkdir(exist_ok=True)
            self.sync_folder(path.parent)

    def write(self, file: IO[bytes], block: memoryview) -> None:
        """Write all of ``block`` to an unbuffered file."""
        while block:
            block = block[file.write(block) :]

    def write_by(self, path: Path, write: Callable[[str], None]) -> None:
        """Let a library write a file of its own; ``write`` gets its name."""
        write(str(path))

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
    """A new file being written, with its size in bytes and SHA-256 so far.

    Args:
        disk: what the bytes go through.
        path: where; nothing may be there yet.
    """

    __slots__ = ("_buffer", "_disk", "_file", "_hash", "size")

    def __init__(self, disk: Disk, path: Path) -> None:
        self._disk = disk
        self._file: IO[bytes] = path.open("xb", buffering=0)
        self._hash = hashlib.sha256()
        self._buffer = bytearray()
        self.size = 0

    def write(self, content: bytes | memoryview) -> None:
        """Append bytes; they reach the disk in blocks of about a mebibyte."""
        self.size += len(content)
        if len(content) < _BLOCK:
            self._buffer += content
            if len(self._buffer) >= _BLOCK:
                self._flush()
            return
        self._flush()
        view = memoryview(content)
        for start in range(0, len(view), _BLOCK):
            self._write(view[start : start + _BLOCK])

    def _flush(self) -> None:
        if self._buffer:
            self._write(memoryview(self._buffer))
            self._buffer = bytearray()

    def _write(self, block: memoryview) -> None:
        self._hash.update(block)
        self._disk.write(self._file, block)

    def finish(self) -> str:
        """Wait until all bytes are on the disk, close the file and return their SHA-256 as hex digits."""
        self._flush()
        self._disk.sync(self._file)
        self._file.close()
        return self._hash.hexdigest()

    def abandon(self) -> None:
        """Close the file as it is."""
        self._file.close()
