"""Changing an index: one writer, one commit point.

A commit goes through these steps; whatever interrupts it, the next open finds a whole generation:

=====================================================  ==============================================
step                                                   what a crash during or after it leaves
=====================================================  ==============================================
1. take ``lock``                                       the old index; the system frees the lock
2. remove what the manifest does not name              the old index, some leftovers gone
3. write ``segments/<generation>/``, sync each file    the old index, and leftovers
4. sync that folder and ``segments/``                  the old index, and leftovers
5. write and sync ``manifest.json.new``                the old index, and leftovers
6. rename it to ``manifest.json``                      the old index or the new one, never a mixture
7. sync the directory                                  the new index, and the old one's files
8. remove what the manifest no longer names            the new index, some leftovers gone
=====================================================  ==============================================

Leftovers are never read; the next writer removes them in step 2.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

import mrag_cli
from mrag_cli.ground.errors import IndexCorrupt, IndexLocked, IndexMissing, IndexUnsupported, UsageError
from mrag_cli.parts.store.disk import Disk, WrittenFile
from mrag_cli.parts.store.folder_writer import FolderWriter, as_bytes
from mrag_cli.parts.store.layout import DEAD_TYPE, LOCK, MANIFEST, SEGMENTS
from mrag_cli.parts.store.manifest import DeadEntry, Manifest, SegmentEntry, read_manifest
from mrag_cli.parts.terms import TERMS_VERSION
from mrag_cli.parts.tokens import ENCODING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path
    from typing import IO

    from numpy.typing import NDArray

    from mrag_cli.parts.store.manifest import EmbedderEntry, LexicalSettings
    from mrag_cli.parts.store.segment import Segment

_NEW_MANIFEST = f"{MANIFEST}.new"
_RETRY_SECONDS = 0.05


@dataclass(slots=True)
class Transaction:
    """The right to change an index, held until the block of `transaction` ends.

    Attributes:
        directory: the index directory.
        manifest: what is committed; None while there is no index yet.
        disk: where every change goes through.
        settled: whether the manifest is known to be the one on the disk, whatever happens to the machine.
        unreadable: the highest generation of files that belong to an index this version cannot read; 0 for
            none.
    """

    directory: Path
    manifest: Manifest | None
    disk: Disk
    settled: bool = False
    unreadable: int = 0

    @property
    def generation(self) -> int:
        """The generation that the next commit makes."""
        return 1 + (self.manifest.generation if self.manifest else self.unreadable)

    @property
    def folder(self) -> Path:
        """The folder that the next commit's files are written to; it does not exist yet."""
        return self.directory / SEGMENTS / str(self.generation)

    def mark_dead(self, target: FolderWriter, segment: Segment, gone: Sequence[int]) -> SegmentEntry:
        """Write which document rows of ``segment`` are gone, with those that were before.

        Args:
            target: writes to `folder`.
            segment: the open segment.
            gone: document rows that are live so far.

        Returns:
            The segment's new entry.

        Raises:
            IndexCorrupt: the rows that were gone before are not what was written.
        """
        segment.check_dead_digest()
        rows = np.union1d(segment.dead_documents, np.array(gone, np.uint32)).astype(DEAD_TYPE)
        name = f"{segment.entry.name}.dead"
        target.write(name, as_bytes(rows))
        file = target.files.pop(name)

        def size(firsts: NDArray[np.uint32]) -> int:
            return int((firsts[rows + 1].astype(np.int64) - firsts[rows]).sum())

        dead = DeadEntry(
            name=f"{target.folder.name}/{name}",
            size=file.size,
            sha256=file.sha256,
            documents=len(rows),
            units=size(segment.first_units),
            markers=size(segment.first_markers),
            keys=size(segment.first_keys[segment.first_markers]),
        )
        return segment.entry._replace(dead=dead)

    def commit(
        self, segments: Sequence[SegmentEntry], lexical: LexicalSettings, embedder: EmbedderEntry | None
    ) -> Manifest:
        """Make ``segments``, whose files are written and synced, the index; see the module's table.

        Segments without a live document are left out.
        """
        manifest = Manifest(
            generation=self.generation,
            terms=TERMS_VERSION,
            encoding=ENCODING,
            lexical=lexical,
            embedder=embedder,
            segments=tuple(entry for entry in segments if entry.live("documents")),
            written_by=f"mrag {mrag_cli.__version__}",
        )
        new = self.directory / _NEW_MANIFEST
        file = WrittenFile(self.disk, new)
        try:
            file.write(manifest.dumps())
            file.finish()
        finally:
            file.abandon()
        self.disk.replace(new, self.directory / MANIFEST)
        self.manifest, self.settled = manifest, False
        self.disk.sync_folder(self.directory)
        self.settled = True
        with suppress(OSError):  # the index is the new one already; the next writer tries again
            self.collect_garbage()
        return manifest

    def collect_garbage(self) -> None:
        """Remove what is below ``segments/`` but not in the manifest, and an unfinished manifest.

        Not before it is sure that the manifest stays: an older one may name what is garbage now.
        """
        for path, remove in self._garbage():
            if not self.settled:
                self.disk.sync_folder(self.directory)
                self.settled = True
            remove(path)

    def _garbage(self) -> Iterator[tuple[Path, Callable[[Path], None]]]:
        new = self.directory / _NEW_MANIFEST
        if new.is_symlink() or new.exists():
            yield new, self.disk.remove
        root = self.directory / SEGMENTS
        named = _named(self.manifest)
        for folder in sorted(root.iterdir()) if root.is_dir() else []:
            if self.manifest is None and _generation(folder) <= self.unreadable:
                continue
            if folder.is_symlink() or not folder.is_dir():
                yield folder, self.disk.remove
                continue
            for file in sorted(folder.iterdir()):
                if f"{folder.name}/{file.name}" not in named and (file.is_symlink() or not file.is_dir()):
                    yield file, self.disk.remove
            if not any(folder.iterdir()):
                yield folder, self.disk.remove_folder


def _named(manifest: Manifest | None) -> set[str]:
    if manifest is None:
        return set()
    files = {f"{entry.name}/{file}" for entry in manifest.segments for file in entry.files}
    return files | {entry.dead.name for entry in manifest.segments if entry.dead}


@contextmanager
def transaction(
    directory: Path,
    *,
    create: bool = False,
    replace_unreadable: bool = False,
    wait: float = 0.0,
    disk: Disk | None = None,
) -> Iterator[Transaction]:
    """Become the one writer of the index in ``directory``.

    Args:
        directory: the index directory.
        create: the index may not exist yet; its folder is made.
        replace_unreadable: an index whose manifest this version cannot read counts as not there; its files
            stay until a commit.
        wait: how long to wait for another writer, in seconds.
        disk: where every change goes through.

    Raises:
        IndexLocked: another writer has it, and still had it after ``wait`` seconds.
        IndexMissing: there is no index and ``create`` is False.
        IndexCorrupt: its manifest is damaged, or ``lock`` or ``segments`` is a symbolic link, which would
            lead a writer elsewhere.
        UsageError: ``directory`` holds other things than an index.
    """
    disk = disk or Disk()
    if create:
        _check_place(directory)
        disk.make_folder(directory)
    else:
        read_manifest(directory)
    with _lock_file(directory) as lock:
        _acquire(lock.fileno(), directory, wait)
        if (directory / SEGMENTS).is_symlink():
            raise IndexCorrupt(f"{directory / SEGMENTS}: a symbolic link where a folder was written")
        before = 0
        try:
            manifest = read_manifest(directory)
        except IndexMissing:
            if not create:
                raise
            manifest = None
        except (IndexCorrupt, IndexUnsupported):
            if not replace_unreadable:
                raise
            manifest, before = None, _newest(directory / SEGMENTS)
        changing = Transaction(directory, manifest, disk, unreadable=before)
        changing.collect_garbage()
        try:
            yield changing
        except BaseException:
            # Half-written files are no part of the index; those that cannot go now go with the next writer.
            with suppress(OSError):
                changing.collect_garbage()
            raise


def _newest(root: Path) -> int:
    """Return the newest generation that has a folder below ``segments/``; 1 where none has."""
    found = [_generation(folder) for folder in root.iterdir()] if root.is_dir() else []
    return max([1, *(generation for generation in found if generation < 1 << 63)])


def _generation(folder: Path) -> int:
    """Return the generation that a folder below ``segments/`` is named after; 2**63 for none."""
    name = folder.name
    return int(name) if name.isascii() and name.isdigit() and len(name) < 19 else 1 << 63


def _check_place(directory: Path) -> None:
    if directory.is_dir():
        ours = {MANIFEST, _NEW_MANIFEST, LOCK, SEGMENTS}
        strange = sorted(entry.name for entry in directory.iterdir() if entry.name not in ours)
        if strange:
            raise UsageError(
                f"{directory} holds other things ({strange[0]}); an index needs a folder of its own"
            )
    elif directory.exists() or directory.is_symlink():
        raise UsageError(f"{directory} is no folder; an index needs a folder of its own")


def _lock_file(directory: Path) -> IO[bytes]:
    path = directory / LOCK
    try:
        descriptor = os.open(
            path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666
        )
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.EISDIR, errno.ENXIO):
            raise
        raise IndexCorrupt(f"{path}: cannot be locked ({error.strerror}); remove it") from None
    return open(descriptor, "r+b", buffering=0)  # noqa: PTH123 - a descriptor, closed by the caller


def _acquire(descriptor: int, directory: Path, wait: float) -> None:
    deadline = time.monotonic() + wait
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise IndexLocked(
                    f"{directory}: another process is writing to it; try again later, or with --wait SECONDS"
                ) from None
            time.sleep(_RETRY_SECONDS)
        else:
            return
