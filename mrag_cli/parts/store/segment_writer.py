"""Writing a segment: documents in, files on the disk out."""

from __future__ import annotations

import hashlib
from array import array
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import orjson

from mrag_cli.parts.store import lexical
from mrag_cli.parts.store.disk import Disk, WrittenFile, written
from mrag_cli.parts.store.graph import write_graph
from mrag_cli.parts.store.layout import (
    ARRAYS,
    DOCUMENTS,
    GRAPH,
    MARKERS,
    RECORDS,
    UNITS,
    VECTOR_TYPE,
    VECTORS,
)
from mrag_cli.parts.store.manifest import DEFAULT_PIVOT, FileEntry, LexicalSettings, SegmentEntry
from mrag_cli.parts.terms import terms
from mrag_cli.parts.tokens import SEPARATOR, counts
from mrag_cli.records.stream import document_json, marker_json, unit_json

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from mrag_cli.parts.store.lexical import Postings
    from mrag_cli.records.models import DocumentGroup

_EMBEDDED_AT_ONCE = 256
_NUMBERS = (
    "documents.units",
    "documents.markers",
    "markers.keys",
    "markers.tokens",
    "markers.costs",
    "markers.headers",
    "units.costs",
)
"""The arrays that are collected while documents come in."""
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
        with written(self.disk, self.folder / name) as file:
            file.write(content)
        self.files[name] = FileEntry(file.size, file.digest)

    def write_array(self, name: str, values: Any) -> None:
        """Write one of the format's arrays in its own type."""
        self.write(name, as_bytes(np.ascontiguousarray(values, ARRAYS[name])))

    def write_postings(self, postings: Postings) -> None:
        """Write the lexical arrays."""
        self.write_array("terms.text", postings.terms_text)
        self.write_array("terms.offsets", postings.terms_offsets)
        self.write_array("postings.offsets", postings.offsets)
        self.write_array("postings.rows", postings.rows)
        self.write_array("postings.weights", postings.weights)

    def add_graph(self, vectors: NDArray[np.float32], threads: int) -> None:
        """Build and write hnswlib's graph of the vectors, if there are enough of them to need one."""
        entry = write_graph(self.disk, self.folder / GRAPH, vectors, threads)
        if entry:
            self.files[GRAPH] = entry

    def sync(self) -> None:
        """Wait until the folder's entries, and its own, are on the disk."""
        self.disk.sync_folder(self.folder)
        self.disk.sync_folder(self.folder.parent)

    def entry(
        self, origins: dict[str, int], documents: int, units: int, markers: int, keys: int
    ) -> SegmentEntry:
        """Sync the folder and return the manifest's entry for it."""
        self.sync()
        return SegmentEntry(self.folder.name, documents, units, markers, keys, origins, self.files)


def write_order(target: FolderWriter, docs: Sequence[str]) -> None:
    """Write the order of the documents' ids and each one's place in it."""
    order = np.array(sorted(range(len(docs)), key=docs.__getitem__), np.uint32)
    ranks = np.empty_like(order)
    ranks[order] = np.arange(len(order), dtype=np.uint32)
    target.write_array("documents.order", order)
    target.write_array("documents.ranks", ranks)


class RecordsWriter:
    """Writes the record lines of a segment and counts where they start."""

    def __init__(self, target: FolderWriter) -> None:
        self._target = target
        self._stack = ExitStack()
        self._files: dict[str, WrittenFile] = {
            name: self._stack.enter_context(written(target.disk, target.folder / name)) for name in RECORDS
        }
        self.offsets = {kind: array("Q", [0]) for kind in (DOCUMENTS, UNITS, MARKERS)}

    def add(self, kind: str, line: bytes) -> None:
        """Append a record's line, newline included."""
        file = self._files[f"{kind}.jsonl"]
        file.write(line)
        self.offsets[kind].append(file.size)

    def add_lines(self, kind: str, lines: memoryview | bytes, starts: NDArray[np.uint64]) -> None:
        """Append the lines of several records.

        Args:
            kind: of the records.
            lines: their lines, run together.
            starts: uint64, (records + 1,), where each starts; the first is the start of ``lines`` itself.
        """
        file = self._files[f"{kind}.jsonl"]
        self.offsets[kind].frombytes((starts[1:] - starts[0] + np.uint64(file.size)).tobytes())
        file.write(lines)

    def rows(self, kind: str) -> int:
        """Return the number of records of a kind so far."""
        return len(self.offsets[kind]) - 1

    def close(self) -> None:
        """Finish the files and write where their records start."""
        self._stack.close()
        for name, file in self._files.items():
            self._target.files[name] = FileEntry(file.size, file.digest)
        for kind, offsets in self.offsets.items():
            self._target.write_array(f"{kind}.offsets", offsets)

    def abandon(self) -> None:
        """Close the files without finishing them."""
        self._stack.close()


@dataclass(frozen=True, slots=True)
class SegmentSettings:
    """How a segment is built.

    Attributes:
        lexical: BM25's parameters.
        derive_pivot: take the length pivot from the keys instead, for a new index.
        embedder: for the dense path, or None.
        threads: for hnswlib's graph; one gives the same bytes every time.
    """

    lexical: LexicalSettings
    embedder: Embedder | None = None
    threads: int = 1
    derive_pivot: bool = False


def group_digest(group: DocumentGroup) -> bytes:
    """Return 16 bytes that tell this state of a document, with its units and markers, from any other."""
    digest = hashlib.blake2b(digest_size=16)
    for record in (
        document_json(group.document),
        *map(unit_json, group.units),
        *map(marker_json, group.markers),
    ):
        digest.update(orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE | orjson.OPT_SORT_KEYS))
    return digest.digest()


class SegmentWriter:
    """Collects documents into a segment.

    Records go to the disk as they come; in memory stay about 100 bytes a key (its terms and numbers),
    the vocabulary, and the vectors.

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
        self._numbers = {name: array("I") for name in _NUMBERS}
        self._origins: dict[str, int] = {}
        self._vocabulary: dict[str, int] = {}
        self._ids = array("I")
        self._lengths = array("I")
        self._unembedded: list[str] = []
        self._vectors: list[NDArray[np.float32]] = []

    @property
    def documents(self) -> int:
        """Documents so far."""
        return len(self._docs)

    @property
    def markers(self) -> int:
        """Markers so far."""
        return self._records.rows(MARKERS)

    def add(self, group: DocumentGroup) -> None:
        """Add a document with its units and markers."""
        records, numbers = self._records, self._numbers
        numbers["documents.units"].append(records.rows(UNITS))
        numbers["documents.markers"].append(records.rows(MARKERS))
        self._docs.append(group.document.doc)
        self._digests.append(group_digest(group))
        records.add(DOCUMENTS, _line(document_json(group.document)))
        for unit in group.units:
            records.add(UNITS, _line(unit_json(unit)))
        numbers["units.costs"].extend(counts([unit.text.strip() + SEPARATOR for unit in group.units]))
        values = [marker.value.strip() for marker in group.markers]
        tokens = counts(values)
        numbers["markers.tokens"].extend(tokens)
        numbers["markers.costs"].extend(counts([value + SEPARATOR for value in values]))
        for marker, value_tokens in zip(group.markers, tokens, strict=True):
            record = marker_json(marker)
            record["tokens"] = value_tokens
            records.add(MARKERS, _line(record))
            numbers["markers.keys"].append(len(self._lengths))
            header = marker.header.strip()
            numbers["markers.headers"].append(counts([header + "\n"])[0] if header else 0)
            self._origins[marker.origin] = self._origins.get(marker.origin, 0) + 1
            for key in marker.keys:
                self._add_key(key)

    def _add_key(self, key: str) -> None:
        number = self._vocabulary.setdefault
        found = [number(term, len(self._vocabulary)) for term in terms(key)]
        self._ids.extend(found)
        self._lengths.append(len(found))
        if self._settings.embedder:
            self._unembedded.append(key)
            if len(self._unembedded) >= _EMBEDDED_AT_ONCE:
                self._embed()

    def _embed(self) -> None:
        if self._settings.embedder and self._unembedded:
            self._vectors.append(self._settings.embedder.embed(self._unembedded))
            self._unembedded = []

    def finish(self) -> tuple[SegmentEntry, LexicalSettings, int]:
        """Write the rest and return the manifest's entry, BM25's parameters and the vectors' dimension.

        The dimension is 0 without an embedder.
        """
        self._records.close()
        lengths = np.array(self._lengths, np.uint32)
        settings = self._settings.lexical
        if self._settings.derive_pivot:
            settings = replace(settings, pivot=length_pivot(lengths))
        numbers = self._numbers
        numbers["documents.units"].append(self._records.rows(UNITS))
        numbers["documents.markers"].append(self._records.rows(MARKERS))
        numbers["markers.keys"].append(len(lengths))
        write_order(self._target, self._docs)
        for name, values in numbers.items():
            self._target.write_array(name, values)
        self._target.write("documents.digests", b"".join(self._digests))
        ids = np.array(self._ids, np.uint32)
        del self._ids, self._lengths
        self._target.write_postings(lexical.build(self._vocabulary, ids, lengths, settings))
        dimension = self._finish_vectors()
        entry = self._target.entry(
            self._origins,
            len(self._docs),
            self._records.rows(UNITS),
            self._records.rows(MARKERS),
            len(lengths),
        )
        return entry, settings, dimension

    def _finish_vectors(self) -> int:
        if not self._settings.embedder:
            return 0
        self._embed()
        if not self._vectors:  # the dimension must be known even where there is nothing to embed yet
            self._vectors.append(self._settings.embedder.embed(["dimension"])[:0])
        vectors = np.concatenate(self._vectors)
        self._target.write(VECTORS, as_bytes(np.ascontiguousarray(vectors, VECTOR_TYPE)))
        self._target.add_graph(vectors, self._settings.threads)
        return int(vectors.shape[1])

    def abandon(self) -> None:
        """Stop writing; what was written is no part of the index and the next writer removes it."""
        self._records.abandon()


def length_pivot(lengths: NDArray[np.uint32]) -> float:
    """Return the mean key length in terms, rounded to a coarse grid of half octaves, at least 4.

    Coarse, so that an index and its rebuild a year later are likely to agree.
    """
    mean = float(lengths.mean()) if len(lengths) else DEFAULT_PIVOT
    return float(2 ** (round(_PIVOT_STEPS * np.log2(max(mean, 4))) / _PIVOT_STEPS))


def _line(record: dict[str, Any]) -> bytes:
    return orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE)
