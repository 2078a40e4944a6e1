"""An open segment: memory-mapped arrays and random access to its records."""

from __future__ import annotations

import mmap
import os
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from mrag_cli.ground.errors import IndexCorrupt
from mrag_cli.parts.store.layout import (
    ARRAYS,
    DEAD_TYPE,
    DOCUMENTS,
    GRAPH,
    MARKERS,
    RECORDS,
    UNITS,
    VECTOR_TYPE,
    VECTORS,
)
from mrag_cli.parts.store.lexical import Postings
from mrag_cli.records.lines import Fields
from mrag_cli.records.stream import read_document, read_marker, read_unit

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from mrag_cli.parts.store.manifest import EmbedderEntry, SegmentEntry
    from mrag_cli.records.models import Document, Marker, Unit


class Segment:
    """A segment opened for reading; nothing of it is in memory until it is touched.

    Every file is opened, and its size checked against the manifest, at once, so that the segment stays
    readable when a later commit removes its files.

    Args:
        root: the index's ``segments`` folder.
        entry: what the manifest says of it.
        embedder: the index's embedder, or None.

    Raises:
        FileNotFoundError: a file is missing; a commit may have removed it.
        IndexCorrupt: a file has another size than the manifest says, or is no regular file.
    """

    def __init__(self, root: Path, entry: SegmentEntry, embedder: EmbedderEntry | None) -> None:
        self.entry = entry
        self.folder = root / entry.name
        self._mapped = {
            name: _map(self.folder / name, entry.files[name].size)
            for name in (*ARRAYS, *RECORDS, *((VECTORS,) if embedder else ()))
        }
        self._dimension = embedder.dimension if embedder else 0
        if GRAPH in entry.files:
            _check_size(self.folder / GRAPH, entry.files[GRAPH].size)
        self._dead = _map(root / entry.dead.name, entry.dead.size) if entry.dead else b""

    def array(self, name: str) -> NDArray[Any]:
        """Return one of the segment's arrays, read-only and memory-mapped."""
        return np.frombuffer(self._mapped[name], ARRAYS[name])

    @cached_property
    def postings(self) -> Postings:
        """The lexical arrays."""
        return Postings(
            self.array("terms.text"),
            self.array("terms.offsets"),
            self.array("postings.offsets"),
            self.array("postings.rows"),
            self.array("postings.weights"),
        )

    @cached_property
    def vectors(self) -> NDArray[np.float32]:
        """The keys' vectors, float32, (keys, dimension), of unit length."""
        return np.frombuffer(self._mapped[VECTORS], VECTOR_TYPE).reshape(-1, self._dimension)

    @cached_property
    def first_units(self) -> NDArray[np.uint32]:
        """First unit row of each document, and the number of all: uint32, (documents + 1,)."""
        return self.array("documents.units")

    @cached_property
    def first_markers(self) -> NDArray[np.uint32]:
        """First marker row of each document, and the number of all: uint32, (documents + 1,)."""
        return self.array("documents.markers")

    @cached_property
    def first_keys(self) -> NDArray[np.uint32]:
        """First key row of each marker, and the number of all: uint32, (markers + 1,)."""
        return self.array("markers.keys")

    @cached_property
    def dead_documents(self) -> NDArray[np.uint32]:
        """Rows of the documents that are gone, ascending: uint32."""
        return np.frombuffer(self._dead, DEAD_TYPE)

    @cached_property
    def live_markers(self) -> NDArray[np.bool_] | None:
        """Which markers are live: bool, (markers,); None when all are."""
        return self._live(self.first_markers, self.entry.markers)

    @cached_property
    def live_keys(self) -> NDArray[np.bool_] | None:
        """Which keys are live: bool, (keys,); None when all are."""
        return self._live(self.first_keys[self.first_markers], self.entry.keys)

    @cached_property
    def live_units(self) -> NDArray[np.bool_] | None:
        """Which units are live: bool, (units,); None when all are."""
        return self._live(self.first_units, self.entry.units)

    def lines(self, kind: str, start: int, end: int) -> bytes:
        """Return bytes of a record file."""
        found: bytes = self._mapped[f"{kind}.jsonl"][start:end]
        return found

    def _live(self, firsts: NDArray[np.uint32], rows: int) -> NDArray[np.bool_] | None:
        dead = self.dead_documents
        if not len(dead):
            return None
        live = np.ones(rows, np.bool_)
        for start, end in zip(firsts[dead].tolist(), firsts[dead + 1].tolist(), strict=True):
            live[start:end] = False
        return live

    def _line(self, kind: str, row: int) -> bytes:
        start, end = self.array(f"{kind}.offsets")[row : row + 2].tolist()
        return self.lines(kind, start, end)

    def _fields(self, kind: str, row: int) -> Fields:
        path = str(self.folder / f"{kind}.jsonl")
        try:
            value = orjson.loads(self._line(kind, row))
        except orjson.JSONDecodeError:
            raise IndexCorrupt(f"{path}: row {row} is not a record; `mrag verify` tells more") from None
        return Fields(path, row + 1, value)

    def document(self, row: int) -> Document:
        """Return a document record."""
        return read_document(self._fields(DOCUMENTS, row))

    def unit(self, row: int) -> Unit:
        """Return a unit record."""
        return read_unit(self._fields(UNITS, row))

    def marker(self, row: int) -> Marker:
        """Return a marker record."""
        return read_marker(self._fields(MARKERS, row))

    def document_of(self, marker_row: int) -> int:
        """Return the document row of a marker row."""
        return int(np.searchsorted(self.first_markers, marker_row, side="right")) - 1

    def find(self, doc: str) -> int | None:
        """Return the row of the document ``doc``, dead or live, or None.

        Reads about ``log2(documents)`` records.
        """
        order = self.array("documents.order")
        low, high = 0, len(order)
        while low < high:
            middle = (low + high) // 2
            if self.document(int(order[middle])).doc < doc:
                low = middle + 1
            else:
                high = middle
        if low < len(order) and self.document(int(order[low])).doc == doc:
            return int(order[low])
        return None

    def is_dead(self, document_row: int) -> bool:
        """Tell whether a document is gone."""
        dead = self.dead_documents
        place = int(np.searchsorted(dead, document_row))
        return place < len(dead) and int(dead[place]) == document_row

    def digest(self, document_row: int) -> bytes:
        """Return the 16 bytes that tell one state of a document from another."""
        digest: bytes = self.array("documents.digests")[document_row].tobytes()
        return digest

    def live_document_rows(self) -> NDArray[np.int64]:
        """Return the rows of the documents that are there, ascending."""
        rows = np.arange(self.entry.documents)
        return (
            np.setdiff1d(rows, self.dead_documents, assume_unique=True) if len(self.dead_documents) else rows
        )


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise IndexCorrupt(f"{path}: cannot be read ({error.strerror})") from None


def _checked(descriptor: int, path: Path, size: int) -> None:
    found = os.fstat(descriptor).st_size
    if found != size:
        raise IndexCorrupt(
            f"{path}: {found} bytes where {size} were written; "
            "restore the directory from a copy or build it again"
        )


def _check_size(path: Path, size: int) -> None:
    descriptor = _open(path)
    try:
        _checked(descriptor, path, size)
    finally:
        os.close(descriptor)


def _map(path: Path, size: int) -> mmap.mmap | bytes:
    descriptor = _open(path)
    try:
        _checked(descriptor, path, size)
        return mmap.mmap(descriptor, size, prot=mmap.PROT_READ) if size else b""
    finally:
        os.close(descriptor)
