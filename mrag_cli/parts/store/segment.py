"""An open segment: memory-mapped arrays and random access to its records."""

from __future__ import annotations

import mmap
import os
import stat
from contextlib import contextmanager
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import orjson

from mrag_cli.ground.errors import IndexCorrupt, IndexUnsupported, InputError
from mrag_cli.parts.store.layout import (
    ARRAYS,
    ARRAYS_FILE,
    DEAD_TYPE,
    DOCUMENTS,
    GRAPH,
    MARKERS,
    UNITS,
    VECTOR_TYPES,
    VECTORS,
    array_places,
)
from mrag_cli.parts.store.lexical import Postings
from mrag_cli.records.lines import Fields
from mrag_cli.records.stream import read_document, read_marker, read_unit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from mrag_cli.parts.store.manifest import EmbedderEntry, SegmentEntry
    from mrag_cli.records.models import Document, Marker, Unit

R = TypeVar("R")

_BLOCK = 1 << 16
"""Vectors that are widened to float32 at a time."""


class Segment:
    """A segment opened for reading; nothing of it is in memory until it is touched.

    Every file is opened, and its size checked against the manifest, at once, so that the segment stays
    readable when a later commit removes its files. Only the graph, which hnswlib reads by name, is not.

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
        with _opened_folder(self.folder) as folder:
            self._mapped = {
                name: _map(self.folder / name, folder, file.size)
                for name, file in entry.files.items()
                if name != GRAPH
            }
            if GRAPH in entry.files:
                os.close(_open_sized(self.folder / GRAPH, folder, entry.files[GRAPH].size))
        self._dead_path = root / entry.dead.name if entry.dead else self.folder
        self._dead: mmap.mmap | bytes = b""
        if entry.dead:
            with _opened_folder(self._dead_path.parent) as folder:
                self._dead = _map(self._dead_path, folder, entry.dead.size)
        self._places = array_places(entry.rows)[0]
        self._arrays: dict[str, NDArray[Any]] = {}
        self._embedder = embedder
        self._check_ends()

    def _check_ends(self) -> None:
        """Check that the arrays that point elsewhere end where that ends."""
        rows = self.entry.rows
        ends = {
            "documents.units": rows.units,
            "documents.markers": rows.markers,
            "markers.keys": rows.keys,
            "terms.offsets": rows.term_bytes,
            "postings.offsets": rows.postings,
        }
        ends |= {
            f"{kind}.offsets": self.entry.files[f"{kind}.jsonl"].size for kind in (DOCUMENTS, UNITS, MARKERS)
        }
        for name, end in ends.items():
            if self.array(name)[-1] != end:
                raise self.corrupt(ARRAYS_FILE, f"{name} contradicts the manifest")

    def corrupt(self, file: str, what: str) -> IndexCorrupt:
        """Return the error for a file of this segment whose content cannot be what was written."""
        path = self._dead_path if file == DEAD_TYPE else self.folder / file
        return IndexCorrupt(
            f"{path}: {what}; `mrag verify` tells which files are damaged: restore the directory from a "
            "copy or build it again"
        )

    def array(self, name: str) -> NDArray[Any]:
        """Return one of the segment's arrays, read-only and memory-mapped."""
        found = self._arrays.get(name)
        if found is None:
            place = self._places[name]
            kind = ARRAYS[name].type
            found = (
                np.frombuffer(self._mapped[ARRAYS_FILE], kind, place.length, place.start)
                if place.length
                else np.empty(0, kind)
            )
            self._arrays[name] = found
        return found

    def content(self, file: str) -> mmap.mmap | bytes:
        """Return the bytes of one of the segment's files but the graph, memory-mapped."""
        return self._mapped[file]

    def check_digests(self) -> None:
        """Check that all files but the graph are what was written, before they are rewritten.

        Once damage has a new digest, nothing shows it any more.

        Raises:
            IndexCorrupt: one is not.
        """
        for name, file in self.entry.files.items():
            if name != GRAPH and _digest(self._mapped[name]) != file.sha256:
                raise self.corrupt(name, "not the bytes that were written")
        self.check_dead_digest()

    def check_dead_digest(self) -> None:
        """Check likewise the file of dead rows."""
        dead = self.entry.dead
        if dead and _digest(self._dead) != dead.sha256:
            raise self.corrupt(DEAD_TYPE, "not the bytes that were written")

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
    def postings_of(self) -> Callable[[str], tuple[NDArray[np.uint32], NDArray[np.float32]]]:
        """`Postings.of`, for a term as text, that remembers where the last terms were."""
        postings = self.postings
        return lru_cache(maxsize=1 << 12)(lambda term: postings.of(term.encode()))

    @cached_property
    def vectors(self) -> NDArray[Any]:
        """The keys' vectors as stored: float32 or float16, (keys, dimension), of unit length."""
        assert self._embedder is not None  # noqa: S101 - asked for only where there are vectors
        shape = (self.entry.rows.keys, self._embedder.dimension)
        kind = VECTOR_TYPES[self._embedder.dtype]
        return (
            np.frombuffer(self._mapped[VECTORS], kind).reshape(shape) if shape[0] else np.empty(shape, kind)
        )

    def products(self, vector: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the inner product of each key's vector with ``vector``: float32, (keys,)."""
        vectors = self.vectors
        if vectors.dtype == np.float32:
            found: NDArray[np.float32] = vectors @ vector
            return found
        parts = [
            vectors[start : start + _BLOCK].astype(np.float32) @ vector
            for start in range(0, len(vectors), _BLOCK)
        ]
        return np.concatenate(parts) if parts else np.empty(0, np.float32)

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
        rows = np.frombuffer(self._dead, DEAD_TYPE) if self._dead else np.empty(0, DEAD_TYPE)
        if len(rows) and (rows[-1] >= self.entry.rows.documents or (rows[1:] <= rows[:-1]).any()):
            raise self.corrupt(DEAD_TYPE, "not rows in ascending order")
        return rows

    @cached_property
    def live_markers(self) -> NDArray[np.bool_] | None:
        """Which markers are live: bool, (markers,); None when all are."""
        return self._live(self.first_markers, MARKERS)

    @cached_property
    def live_keys(self) -> NDArray[np.bool_] | None:
        """Which keys are live: bool, (keys,); None when all are."""
        dead = self.dead_documents
        return self._live(self.first_keys[self.first_markers] if len(dead) else self.first_markers, "keys")

    def _live(self, firsts: NDArray[np.uint32], kind: str) -> NDArray[np.bool_] | None:
        dead = self.dead_documents
        if not len(dead):
            return None
        live = np.ones(getattr(self.entry.rows, kind), np.bool_)
        for start, end in zip(firsts[dead].tolist(), firsts[dead + 1].tolist(), strict=True):
            live[start:end] = False
        if np.count_nonzero(live) != self.entry.live(kind):
            raise self.corrupt(DEAD_TYPE, "not the rows that the manifest counts")
        return live

    def record_line(self, kind: str, row: int) -> bytes:
        """Return the line of a record, with its newline.

        Args:
            kind: ``documents``, ``units`` or ``markers``.
            row: its row.

        Raises:
            IndexCorrupt: there is no such row, or it is no line.
        """
        place = self.array(f"{kind}.offsets")[row : row + 2].tolist() if row >= 0 else []
        line: bytes = self._mapped[f"{kind}.jsonl"][slice(*place)] if len(place) == 2 else b""
        if not line.endswith(b"\n"):
            raise self.corrupt(f"{kind}.jsonl", f"row {row} is not there")
        return line

    def _record(self, kind: str, row: int, read: Callable[[Fields], R], **counted: int) -> R:
        try:
            return read(Fields(kind, row + 1, {**self._object(kind, row), **counted}))
        except (InputError, IndexUnsupported):
            raise self.corrupt(f"{kind}.jsonl", f"row {row} is not a record") from None

    def _object(self, kind: str, row: int) -> dict[str, Any]:
        line = self.record_line(kind, row)
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError:
            value = None
        if type(value) is not dict:
            raise self.corrupt(f"{kind}.jsonl", f"row {row} is not a record")
        return value

    def document(self, row: int) -> Document:
        """Return a document record."""
        return self._record(DOCUMENTS, row, read_document)

    def value(self, row: int) -> str:
        """Return the value of a marker, which takes less than reading its record."""
        value = self._object(MARKERS, row).get("value")
        if type(value) is not str:
            raise self.corrupt(f"{MARKERS}.jsonl", f"row {row} is not a record")
        return value

    def document_id(self, row: int) -> str:
        """Return the id of a document, which takes less than reading its record."""
        doc = self._object(DOCUMENTS, row).get("doc")
        if type(doc) is not str:
            raise self.corrupt(f"{DOCUMENTS}.jsonl", f"row {row} is not a record")
        return doc

    def unit(self, row: int) -> Unit:
        """Return a unit record."""
        return self._record(UNITS, row, read_unit)

    def marker(self, row: int) -> Marker:
        """Return a marker record, with its value's tokens as counted."""
        counted = self.array("markers.tokens")[row : row + 1].tolist() if row >= 0 else []
        return self._record(MARKERS, row, read_marker, **({"tokens": counted[0]} if counted else {}))

    def document_of(self, marker_row: int) -> int:
        """Return the document row of a marker row."""
        row = int(self.first_markers.searchsorted(marker_row, side="right")) - 1
        if not 0 <= row < self.entry.rows.documents:
            raise self.corrupt(ARRAYS_FILE, f"marker {marker_row} is in no document")
        return row

    def documents_of(self, marker_rows: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        """Return the document row of each marker row: int64, (markers,)."""
        rows: NDArray[np.int64] = self.first_markers.searchsorted(marker_rows, side="right") - 1
        if len(rows) and not 0 <= rows.min() <= rows.max() < self.entry.rows.documents:
            raise self.corrupt(ARRAYS_FILE, "markers that are in no document")
        return rows

    def find(self, doc: str) -> int | None:
        """Return the row of the document ``doc``, dead or live, or None.

        Reads about ``log2(documents)`` records.
        """
        order = self.array("documents.order")
        low, high = 0, len(order)
        while low < high:
            middle = (low + high) // 2
            if self.document_id(int(order[middle])) < doc:
                low = middle + 1
            else:
                high = middle
        if low < len(order) and self.document_id(int(order[low])) == doc:
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
        rows = np.arange(self.entry.rows.documents)
        return (
            np.setdiff1d(rows, self.dead_documents, assume_unique=True) if len(self.dead_documents) else rows
        )


def _digest(content: mmap.mmap | bytes) -> str:
    from hashlib import sha256  # not on the way of a query

    return sha256(content).hexdigest()


@contextmanager
def _opened_folder(path: Path) -> Iterator[int]:
    """Open a folder below ``segments``; neither it nor ``segments`` may be a symbolic link."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    place = path.parent
    try:
        above = os.open(place, flags)
        try:
            place = path
            folder = os.open(path.name, flags, dir_fd=above)
        finally:
            os.close(above)
    except FileNotFoundError:
        raise FileNotFoundError(2, "missing", str(place)) from None
    except NotADirectoryError:
        raise IndexCorrupt(f"{place}: not the folder that was written") from None
    try:
        yield folder
    finally:
        os.close(folder)


def _open_sized(path: Path, folder: int, size: int) -> int:
    try:
        descriptor = os.open(
            path.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder
        )
    except FileNotFoundError:
        raise FileNotFoundError(2, "missing", str(path)) from None
    except PermissionError:
        raise
    except OSError as error:
        raise IndexCorrupt(f"{path}: cannot be read ({error.strerror})") from None
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_size != size:
        os.close(descriptor)
        raise IndexCorrupt(
            f"{path}: {status.st_size} bytes where {size} were written; "
            "restore the directory from a copy or build it again"
        )
    return descriptor


def _map(path: Path, folder: int, size: int) -> mmap.mmap | bytes:
    descriptor = _open_sized(path, folder, size)
    try:
        return mmap.mmap(descriptor, size, prot=mmap.PROT_READ) if size else b""
    finally:
        os.close(descriptor)
