"""Writing a segment: documents in, files on the disk out."""

from __future__ import annotations

import hashlib
from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import orjson

from mrag_cli.ground.errors import IndexUnsupported
from mrag_cli.parts.costs import costs, header_cost
from mrag_cli.parts.store import lexical
from mrag_cli.parts.store.disk import WrittenFile
from mrag_cli.parts.store.folder_writer import (
    FolderWriter,
    RecordsWriter,
    as_bytes,
    order_arrays,
    page_arrays,
    postings_arrays,
)
from mrag_cli.parts.store.layout import DOCUMENTS, MARKERS, UNITS, VECTOR_TYPES, VECTORS
from mrag_cli.parts.store.manifest import DEFAULT_PIVOT, LexicalSettings
from mrag_cli.parts.terms import terms
from mrag_cli.parts.titles import page_hash, page_titles
from mrag_cli.records.stream import document_json, marker_json, unit_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from mrag_cli.parts.store.disk import Disk
    from mrag_cli.parts.store.manifest import SegmentEntry
    from mrag_cli.records.models import DocumentGroup

_EMBEDDED_AT_ONCE = 256
_COLLECTED = (
    "documents.units",
    "documents.markers",
    "markers.keys",
    "markers.tokens",
    "markers.costs",
    "markers.headers",
    "markers.contexts",
)
"""The arrays that are collected while documents come in, in the format's order."""
_CUT_FROM_UNITS = "extractive"
"""Origin of markers whose values are parts of a unit's own words, so that the rest of it is their context."""
_PIVOT_STEPS = 2
"""Steps of the length pivot's grid between one power of two and the next."""


class Embedder(Protocol):
    """Turns texts into vectors."""

    name: str

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one vector of unit length for each text: float32, (texts, dimension)."""


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
        self._pages = array("Q")
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
        self._pages.extend(map(page_hash, page_titles(group)))
        for marker in group.markers:
            collected["markers.keys"].append(len(self._lengths))
            cut = marker.origin == _CUT_FROM_UNITS and marker.pointers
            collected["markers.contexts"].append(marker.pointers[0] if cut else 0)
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
            settings = settings._replace(pivot=length_pivot(lengths))
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
        yield from page_arrays(np.array(self._pages, np.uint64))
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
