"""Writing a segment: documents in, files on the disk out."""

from __future__ import annotations

import hashlib
from array import array
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import orjson

from mrag_cli.ground.errors import IndexUnsupported
from mrag_cli.parts.costs import costs, header_cost
from mrag_cli.parts.store import lexical
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
from mrag_cli.parts.store.manifest import DEFAULT_PIVOT, FileEntry, LexicalSettings, SegmentEntry
from mrag_cli.parts.terms import terms
from mrag_cli.records.stream import document_json, marker_json, unit_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from mrag_cli.parts.store.lexical import Postings
    from mrag_cli.records.models import DocumentGroup

_EMBEDDED_AT_ONCE = 256
_COLLECTED = (
    "documents.units",
    "documents.markers",
    "markers.keys",
    "markers.tokens",
    "markers.costs",
    "markers.headers",
)
"""The arrays that are collected while documents come in, in the format's order."""
_PIVOT_STEPS = 2
"""Steps of the length pivot's grid between one power of two and the next."""


class Embedder(Protocol):
    """Turns texts into vectors."""

    name: str

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one vector of unit length for each text: float32, (texts, dimension)."""


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


class GroupLines(NamedTuple):
    """A document as an index stores it.

    Attributes:
        document, units, markers: the lines of its records, members sorted by name. A marker's ``tokens``
            are left out: they are counted, and stored as a number.
        digest: 16 bytes that tell this state of the document from any other.
    """

    document: bytes
    units: list[bytes]
    markers: list[bytes]
    digest: bytes

    @classmethod
    def of(cls, group: DocumentGroup) -> GroupLines:
        """Return a document's lines."""
        document = _line(document_json(group.document))
        units = [_line(unit_json(unit)) for unit in group.units]
        markers = []
        for marker in group.markers:
            record = marker_json(marker)
            record.pop("tokens", None)
            markers.append(_line(record))
        digest = hashlib.blake2b(b"".join((document, *units, *markers)), digest_size=16)
        return cls(document, units, markers, digest.digest())


@dataclass(frozen=True, slots=True)
class SegmentSettings:
    """How a segment is built.

    Attributes:
        lexical: BM25's parameters.
        derive_pivot: take the length pivot from the keys instead, for a new index.
        embedder: for the dense path, or None.
        dtype: of stored vectors, ``float32`` or ``float16``.
        dimension: that the embedder's vectors must have; 0 for any.
        threads: for hnswlib's graph; one gives the same bytes every time.
    """

    lexical: LexicalSettings
    embedder: Embedder | None = None
    threads: int = 1
    derive_pivot: bool = False
    dtype: str = "float32"
    dimension: int = 0


class SegmentWriter:
    """Collects documents into a segment.

    Records and vectors go to the disk as they come; in memory stay about 150 bytes a key (its terms and
    numbers) and the vocabulary.

    Args:
        disk: where every change goes through.
        folder: the segment's folder, which must not exist yet.
        settings: how to build it.
    """

    def __init__(self, disk: Disk, folder: Path, settings: SegmentSettings) -> None:
        self._settings = settings
        self._target = FolderWriter(disk, folder)
        self._records = RecordsWriter(self._target)
        self._docs: list[str] = []
        self._digests: list[bytes] = []
        self._collected = {name: array("I") for name in _COLLECTED}
        self._origins: dict[str, int] = {}
        self._vocabulary: dict[str, int] = {}
        self._ids = array("I")
        self._lengths = array("I")
        self._vectors = _VectorsWriter(self._target, settings) if settings.embedder else None

    @property
    def documents(self) -> int:
        """Documents so far."""
        return len(self._docs)

    def add(self, group: DocumentGroup, lines: GroupLines | None = None) -> None:
        """Add a document with its units and markers; ``lines`` are its own, if they are there already."""
        lines = lines or GroupLines.of(group)
        records, collected = self._records, self._collected
        collected["documents.units"].append(records.rows(UNITS))
        collected["documents.markers"].append(records.rows(MARKERS))
        self._docs.append(group.document.doc)
        self._digests.append(lines.digest)
        records.add(DOCUMENTS, [lines.document])
        records.add(UNITS, lines.units)
        records.add(MARKERS, lines.markers)
        tokens, with_separator = costs([marker.value.strip() for marker in group.markers])
        collected["markers.tokens"].extend(tokens)
        collected["markers.costs"].extend(with_separator)
        for marker in group.markers:
            collected["markers.keys"].append(len(self._lengths))
            collected["markers.headers"].append(header_cost(marker.header.strip()))
            self._origins[marker.origin] = self._origins.get(marker.origin, 0) + 1
            for key in marker.keys:
                self._add_key(key)

    def _add_key(self, key: str) -> None:
        vocabulary = self._vocabulary
        found = [vocabulary.setdefault(term, len(vocabulary)) for term in terms(key)]
        self._ids.extend(found)
        self._lengths.append(len(found))
        if self._vectors:
            self._vectors.add(key)

    def finish(self) -> tuple[SegmentEntry, LexicalSettings, int]:
        """Write the rest and return the manifest's entry, BM25's parameters and the vectors' dimension.

        The dimension is 0 without an embedder.
        """
        self._records.close()
        dimension = self._vectors.finish() if self._vectors else 0
        lengths = np.array(self._lengths, np.uint32)
        settings = self._settings.lexical
        if self._settings.derive_pivot:
            settings = replace(settings, pivot=length_pivot(lengths))
        rows = self._target.write_arrays(self._arrays(lengths, settings), len(lengths))
        return self._target.entry(rows, self._origins), settings, dimension

    def _arrays(self, lengths: NDArray[np.uint32], settings: LexicalSettings) -> Iterator[tuple[str, Any]]:
        yield from self._records.arrays()
        yield from order_arrays(self._docs)
        yield "documents.digests", np.frombuffer(b"".join(self._digests), "|V16")
        collected = self._collected
        collected["documents.units"].append(self._records.rows(UNITS))
        collected["documents.markers"].append(self._records.rows(MARKERS))
        collected["markers.keys"].append(len(lengths))
        yield from collected.items()
        ids = np.frombuffer(self._ids, np.uint32) if self._ids else np.empty(0, np.uint32)
        yield from postings_arrays(lexical.build(self._vocabulary, ids, lengths, settings))

    def abandon(self) -> None:
        """Stop writing; what was written is no part of the index and the next writer removes it."""
        self._records.abandon()
        if self._vectors:
            self._vectors.abandon()


class _VectorsWriter:
    """Embeds keys and writes their vectors, some hundreds at a time."""

    def __init__(self, target: FolderWriter, settings: SegmentSettings) -> None:
        assert settings.embedder is not None  # noqa: S101 - made only where there is one
        self._embedder = settings.embedder
        self._settings = settings
        self._target = target
        self._file = WrittenFile(target.disk, target.folder / VECTORS)
        self._waiting: list[str] = []
        self._dimension = settings.dimension

    def add(self, key: str) -> None:
        self._waiting.append(key)
        if len(self._waiting) >= _EMBEDDED_AT_ONCE:
            self._embed()

    def _embed(self) -> None:
        # The dimension must be known even where there is nothing to embed.
        vectors = self._embedder.embed(self._waiting or ["dimension"])[: len(self._waiting)]
        dimension = vectors.shape[1]
        if self._dimension not in (0, dimension):
            raise IndexUnsupported(
                f"{self._embedder.name}: vectors of {dimension} dimensions where {self._dimension} are "
                "expected; it is another model than before"
            )
        self._dimension = dimension
        stored = np.ascontiguousarray(vectors, VECTOR_TYPES[self._settings.dtype])
        self._file.write(as_bytes(stored))
        self._waiting = []

    def finish(self) -> int:
        if self._waiting or not self._dimension:
            self._embed()
        self._target.add(VECTORS, self._file)
        self._target.add_graph(self._dimension, self._settings.dtype, self._settings.threads)
        return self._dimension

    def abandon(self) -> None:
        self._file.abandon()


def length_pivot(lengths: NDArray[np.uint32]) -> float:
    """Return the mean key length in terms, rounded to a coarse grid of half octaves, at least 4.

    Coarse, so that an index and its rebuild a year later are likely to agree.
    """
    mean = float(lengths.mean()) if len(lengths) else DEFAULT_PIVOT
    return float(2 ** (round(_PIVOT_STEPS * np.log2(max(mean, 4))) / _PIVOT_STEPS))


def _line(record: dict[str, Any]) -> bytes:
    return orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE | orjson.OPT_SORT_KEYS)
