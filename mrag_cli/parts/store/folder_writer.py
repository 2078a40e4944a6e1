"""Writing the files of a segment's folder: record lines, arrays, the graph."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

import numpy as np

from mrag_cli.parts.store.disk import Disk, WrittenFile
from mrag_cli.parts.store.graph import write_graph
from mrag_cli.parts.store.layout import (
    ARRAYS,
    ARRAYS_FILE,
    DOCUMENTS,
    GRAPH,
    MARKERS,
    RECORDS,
    UNITS,
    VECTOR_TYPES,
    VECTORS,
    Rows,
    array_places,
    padding,
)
from mrag_cli.parts.store.manifest import FileEntry, SegmentEntry

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from mrag_cli.parts.store.lexical import Postings


def as_bytes(values: NDArray[Any]) -> memoryview:
    """Return the bytes of a contiguous array, without copying them."""
    return values.reshape(-1).view(np.uint8).data


class FolderWriter:
    """Writes the files of a new folder below ``segments/`` and remembers their sizes and digests."""

    def __init__(self, disk: Disk, folder: Path) -> None:
        self.disk = disk
        self.folder = folder
        self.files: dict[str, FileEntry] = {}
        disk.make_folder(folder)

    def write(self, name: str, content: bytes | memoryview) -> None:
        """Write a whole file."""
        file = WrittenFile(self.disk, self.folder / name)
        try:
            file.write(content)
            self.add(name, file)
        finally:
            file.abandon()

    def add(self, name: str, file: WrittenFile) -> None:
        """Finish a file of this folder and remember it."""
        digest = file.finish()
        self.files[name] = FileEntry(file.size, digest)

    def write_arrays(self, arrays: Iterable[tuple[str, Any]], keys: int) -> Rows:
        """Write the segment's arrays, which must come in the format's order.

        Args:
            arrays: name and entries of each; they may be computed as they are asked for.
            keys: number of keys, which no array counts.
        """
        lengths: dict[str, int] = {}
        file = WrittenFile(self.disk, self.folder / ARRAYS_FILE)
        try:
            for name, entries in arrays:
                values = np.ascontiguousarray(entries, ARRAYS[name].type)
                file.write(bytes(padding(file.size)))
                file.write(as_bytes(values))
                lengths[name] = len(values)
            self.add(ARRAYS_FILE, file)
        finally:
            file.abandon()
        assert [*lengths] == [*ARRAYS]  # noqa: S101 - the callers' arrays come in the format's order
        rows = Rows(
            documents=lengths["documents.order"],
            units=lengths["units.offsets"] - 1,
            markers=lengths["markers.tokens"],
            keys=keys,
            terms=lengths["terms.offsets"] - 1,
            term_bytes=lengths["terms.text"],
            postings=lengths["postings.rows"],
            paged=lengths["pages.rows"],
        )
        assert array_places(rows)[1] == file.size  # noqa: S101 - what every reader expects
        return rows

    def add_graph(self, dimension: int, dtype: str, threads: int) -> None:
        """Build and write hnswlib's graph of the vectors' file, if they are enough to need one."""
        if not self.files[VECTORS].size:
            return
        vectors = np.memmap(self.folder / VECTORS, VECTOR_TYPES[dtype], "r").reshape(-1, dimension)
        entry = write_graph(self.disk, self.folder / GRAPH, vectors, threads)
        if entry:
            self.files[GRAPH] = entry

    def sync(self) -> None:
        """Wait until the folder's entries are on the disk; its own is since it was made."""
        self.disk.sync_folder(self.folder)

    def entry(self, rows: Rows, origins: dict[str, int]) -> SegmentEntry:
        """Sync the folder and return the manifest's entry for it."""
        self.sync()
        return SegmentEntry(self.folder.name, rows, origins, self.files)


def order_arrays(docs: Sequence[str]) -> Iterator[tuple[str, NDArray[np.uint32]]]:
    """Yield the order of the documents' ids and each one's place in it."""
    order = np.array(sorted(range(len(docs)), key=docs.__getitem__), np.uint32)
    ranks = np.empty_like(order)
    ranks[order] = np.arange(len(order), dtype=np.uint32)
    yield "documents.order", order
    yield "documents.ranks", ranks


def page_arrays(pages: NDArray[np.uint64]) -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield the hash of each marker's page, and the table that finds a page's markers."""
    yield "markers.pages", pages
    rows = np.flatnonzero(pages)
    order = np.argsort(pages[rows], kind="stable")
    yield "pages.hashes", pages[rows][order]
    yield "pages.rows", rows[order]


def postings_arrays(postings: Postings) -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield the lexical arrays."""
    yield "terms.text", postings.terms_text
    yield "terms.offsets", postings.terms_offsets
    yield "postings.offsets", postings.offsets
    yield "postings.rows", postings.rows
    yield "postings.weights", postings.weights


class RecordsWriter:
    """Writes the record lines of a segment and counts where they start."""

    def __init__(self, target: FolderWriter) -> None:
        self._target = target
        self._files = {name: WrittenFile(target.disk, target.folder / name) for name in RECORDS}
        self._offsets = {kind: array("Q", [0]) for kind in (DOCUMENTS, UNITS, MARKERS)}

    def add(self, kind: str, lines: Iterable[bytes]) -> None:
        """Append records' lines, newlines included."""
        file, offsets = self._files[f"{kind}.jsonl"], self._offsets[kind]
        for line in lines:
            file.write(line)
            offsets.append(file.size)

    def add_together(self, kind: str, lines: memoryview | bytes, starts: NDArray[np.uint64]) -> None:
        """Append the lines of several records.

        Args:
            kind: of the records.
            lines: their lines, run together.
            starts: uint64, (records + 1,), where each starts; the first is the start of ``lines`` itself.
        """
        file = self._files[f"{kind}.jsonl"]
        self._offsets[kind].frombytes((starts[1:] - starts[0] + np.uint64(file.size)).tobytes())
        file.write(lines)

    def rows(self, kind: str) -> int:
        """Return the number of records of a kind so far."""
        return len(self._offsets[kind]) - 1

    def close(self) -> None:
        """Finish the files."""
        for name, file in self._files.items():
            self._target.add(name, file)

    def arrays(self) -> Iterator[tuple[str, array[int]]]:
        """Yield where the records start."""
        for kind, offsets in self._offsets.items():
            yield f"{kind}.offsets", offsets

    def abandon(self) -> None:
        """Close the files as they are."""
        for file in self._files.values():
            file.abandon()
