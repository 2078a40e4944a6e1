"""A disk that fails, tears, or dies in the middle of any operation, and that forgets what was not synced."""

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import IO

from mrag_cli.parts.store.disk import Disk

WAYS = ("fail", "full", "tear", "kill", "late", "power", "power-old")
"""How an operation may go wrong; see `FaultDisk`."""


class Killed(BaseException):
    """The process is dead: no handler cleans up, because every later operation raises it again."""


class FaultDisk(Disk):
    """Goes wrong at one operation. It never waits for the real disk.

    Args:
        at: number of the operation that goes wrong, from 0; -1 for none.
        way: ``fail``: it raises OSError, later ones work. ``full``: it and every later write or sync raises.
            ``tear``: half of a write happens, then the process dies. ``kill``: the process dies before it.
            ``late``: the process dies after it. ``power``: the machine dies before it, and whatever was
            not synced is lost. ``power-old``: likewise, and an unsynced rename is undone too.
        die: what dying is; raises Killed by default.
    """

    def __init__(self, at: int = -1, way: str = "fail", die: Callable[[], None] | None = None) -> None:
        self.at = at
        self.way = way
        self.operations: list[str] = []
        self._dead = False
        self._die = die
        self._unsynced: set[Path] = set()
        self._unsynced_entries: set[Path] = set()
        self._replaced: dict[Path, bytes | None] = {}

    def worth_trying(self, way: str) -> list[int]:
        """Return the numbers of the operations, of those so far, at which ``way`` is a way of its own."""
        numbers = range(len(self.operations))
        if way in ("tear", "full"):
            return [number for number in numbers if self.operations[number].startswith("write")]
        if way == "power-old":
            return [number for number in numbers if "replace" in self.operations[max(number - 3, 0) : number]]
        return list(numbers)

    def _now(self, name: str, *, writing: bool = False) -> bool:
        """Count an operation; return whether the process dies in the middle of it."""
        if self._dead:
            raise Killed
        number = len(self.operations)
        self.operations.append(name)
        full = self.way == "full" and writing and number > self.at >= 0
        if number != self.at and not full:
            return False
        if self.way == "fail" or (self.way == "full" and writing):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if self.way == "full":
            return False
        if self.way.startswith("power"):
            self._lose()
        if self.way in ("kill", "power", "power-old"):
            self._end()
        return True

    def _end(self) -> None:
        self._dead = True
        if self._die:
            self._die()
        raise Killed

    def _lose(self) -> None:
        for path in self._unsynced:
            if path.exists():
                os.truncate(path, path.stat().st_size // 3)
        for path in sorted(self._unsynced_entries, reverse=True):
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        if self.way == "power-old":
            for path, content in self._replaced.items():
                path.unlink(missing_ok=True)
                if content is not None:
                    path.write_bytes(content)

    def make_folder(self, path: Path) -> None:
        """Create a folder."""
        dying = self._now("make_folder", writing=True)
        if not path.is_dir():
            self._unsynced_entries.add(path)
        super().make_folder(path)
        if dying:
            self._end()

    def write(self, file: IO[bytes], block: memoryview) -> None:
        """Write a block, or half of it."""
        path = Path(str(file.name))
        if path not in self._unsynced and path.stat().st_size == 0:
            self._unsynced_entries.add(path)
        dying = self._now("write", writing=True)
        self._unsynced.add(path)
        super().write(file, block[: len(block) // 2] if dying and self.way == "tear" else block)
        if dying:
            self._end()

    def write_by(self, path: Path, write: Callable[[str], None]) -> None:
        """Let a library write a file, and cut it in half."""
        dying = self._now("write_by", writing=True)
        self._unsynced.add(path)
        self._unsynced_entries.add(path)
        super().write_by(path, write)
        if dying:
            os.truncate(path, path.stat().st_size // 2)
            self._end()

    def sync(self, file: IO[bytes]) -> None:
        """Sync a file."""
        dying = self._now("sync", writing=True)
        file.flush()
        self._unsynced.discard(Path(str(file.name)))
        if dying:
            self._end()

    def sync_folder(self, path: Path) -> None:
        """Sync a folder's entries."""
        dying = self._now("sync_folder", writing=True)
        self._unsynced_entries = {entry for entry in self._unsynced_entries if entry.parent != path}
        self._replaced = {target: old for target, old in self._replaced.items() if target.parent != path}
        if dying:
            self._end()

    def replace(self, source: Path, target: Path) -> None:
        """Rename a file."""
        dying = self._now("replace", writing=True)
        self._replaced[target] = target.read_bytes() if target.exists() else None
        self._unsynced_entries.discard(source)
        super().replace(source, target)
        if dying:
            self._end()

    def remove(self, path: Path) -> None:
        """Remove a file."""
        dying = self._now("remove")
        super().remove(path)
        if dying:
            self._end()

    def remove_folder(self, path: Path) -> None:
        """Remove a folder."""
        dying = self._now("remove_folder")
        super().remove_folder(path)
        if dying:
            self._end()
