"""Indexes that last for one measurement: written without waiting for the disk."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

from mrag_cli.parts.store.disk import Disk

if TYPE_CHECKING:
    from pathlib import Path


class UnsyncedDisk(Disk):
    """A `Disk` that does not wait: what a crash loses is measured again."""

    def sync(self, file: IO[bytes]) -> None:
        """Hand the file's bytes to the operating system."""
        file.flush()

    def sync_folder(self, path: Path) -> None:
        """Do nothing."""
