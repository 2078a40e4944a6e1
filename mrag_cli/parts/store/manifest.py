"""The manifest: the sole commit point, and the owner of everything the libraries do not check."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import orjson

from mrag_cli.ground.errors import IndexCorrupt, IndexMissing, IndexUnsupported
from mrag_cli.parts.store.layout import (
    ARRAYS,
    DEAD_TYPE,
    FORMAT,
    GRAPH,
    MANIFEST,
    OLDEST_READABLE,
    RECORDS,
    VECTORS,
)

if TYPE_CHECKING:
    from pathlib import Path

DEFAULT_PIVOT = 24.0
"""Length pivot of an index that was created empty, in terms."""
_MAXIMUM_BYTES = 16 << 20
_MAXIMUM_ROWS = (1 << 32) - 1
_MAXIMUM_DIMENSION = 1 << 16
_SEGMENT_NAME = re.compile(r"[1-9][0-9]{0,17}")
_DEAD_NAME = re.compile(r"([1-9][0-9]{0,17})/([1-9][0-9]{0,17})\.dead")
_FILE_NAMES = frozenset({*ARRAYS, *RECORDS, VECTORS, GRAPH})


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file's size in bytes and SHA-256 as hex digits."""

    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class DeadEntry:
    """The rows of a segment that are gone: ``name`` below ``segments/`` lists the document rows."""

    name: str
    size: int
    sha256: str
    documents: int
    units: int
    markers: int
    keys: int


@dataclass(frozen=True, slots=True)
class SegmentEntry:
    """A segment: its folder below ``segments/``, its rows (dead ones included) and its files."""

    name: str
    documents: int
    units: int
    markers: int
    keys: int
    origins: dict[str, int]
    files: dict[str, FileEntry]
    dead: DeadEntry | None = None

    @property
    def live_markers(self) -> int:
        """Markers that are not dead."""
        return self.markers - (self.dead.markers if self.dead else 0)

    @property
    def live_keys(self) -> int:
        """Keys of live markers."""
        return self.keys - (self.dead.keys if self.dead else 0)


@dataclass(frozen=True, slots=True)
class LexicalSettings:
    """BM25's parameters: ``k1``, ``b``, and the length pivot in terms, in place of the mean key length."""

    k1: float = 0.9
    b: float = 0.4
    pivot: float = DEFAULT_PIVOT


@dataclass(frozen=True, slots=True)
class EmbedderEntry:
    """The embedder whose vectors the index holds: its SPEC and the vectors' dimension.

    Vectors are normalised to unit length; their inner product is the cosine.
    """

    name: str
    dimension: int
    metric: str = "cosine"
    normalised: bool = True


@dataclass(frozen=True, slots=True)
class Manifest:
    """Everything there is to know about an index before a segment is opened.

    Attributes:
        generation: raised by one with every commit.
        terms: version of the lexical terms (`mrag_cli.parts.terms.TERMS_VERSION`).
        encoding: name of the token encoding that costs are in.
        lexical: BM25's parameters.
        embedder: the embedder, or None for a lexical index.
        segments: the segments, oldest first.
        written_by: name and version of the program, for people.
    """

    generation: int
    terms: int
    encoding: str
    lexical: LexicalSettings
    embedder: EmbedderEntry | None
    segments: tuple[SegmentEntry, ...]
    written_by: str
    format: int = field(default=FORMAT)

    def dumps(self) -> bytes:
        """Return the manifest as the bytes of its file."""
        return orjson.dumps(asdict(self), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def read_manifest(directory: Path) -> Manifest:
    """Read and check the manifest of the index in ``directory``.

    Nothing in it is trusted: names that are not this format's own, sizes that contradict the row counts,
    and absurd numbers are refused.

    Raises:
        IndexMissing: there is no index.
        IndexUnsupported: its format is newer, or older, than this version reads.
        IndexCorrupt: it cannot have been written by any version.
    """
    path = directory / MANIFEST
    try:
        with path.open("rb") as file:
            raw = file.read(_MAXIMUM_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        raise IndexMissing(f"{directory}: no index there; `mrag index -o {directory}` makes one") from None
    try:
        value = orjson.loads(raw)
        found = value["format"]
        if type(found) is not int:
            raise _Malformed("format is no number")
        if not OLDEST_READABLE <= found <= FORMAT:
            raise IndexUnsupported(
                f"{path}: index format {found}; this version reads {OLDEST_READABLE} to {FORMAT}: "
                + ("update mrag" if found > FORMAT else "build the index again")
            )
        return _manifest(value)
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise IndexCorrupt(
            f"{path}: not a manifest ({type(error).__name__}: {error}); "
            "restore the directory from a copy or build it again"
        ) from None


class _Malformed(ValueError):
    """The manifest contradicts itself."""


def _manifest(value: dict[str, Any]) -> Manifest:
    lexical = LexicalSettings(**{name: float(value["lexical"][name]) for name in ("k1", "b", "pivot")})
    if not (0 <= lexical.k1 <= 100 and 0 <= lexical.b <= 1 and 0 < lexical.pivot <= 1e6):
        raise _Malformed(f"lexical settings {lexical} are out of range")
    embedder = _embedder(value["embedder"]) if value["embedder"] is not None else None
    segments = tuple(_segment(entry, embedder) for entry in value["segments"])
    if len({segment.name for segment in segments}) != len(segments):
        raise _Malformed("a segment is named twice")
    return Manifest(
        generation=_whole(value["generation"], 1),
        terms=_whole(value["terms"], 1),
        encoding=str(value["encoding"]),
        lexical=lexical,
        embedder=embedder,
        segments=segments,
        written_by=str(value["written_by"]),
        format=value["format"],
    )


def _embedder(value: dict[str, Any]) -> EmbedderEntry:
    dimension = _whole(value["dimension"], 1)
    if dimension > _MAXIMUM_DIMENSION or value["metric"] != "cosine" or value["normalised"] is not True:
        raise _Malformed(f"embedder {value} is none this version can have written")
    return EmbedderEntry(str(value["name"]), dimension)


def _segment(value: dict[str, Any], embedder: EmbedderEntry | None) -> SegmentEntry:
    name = str(value["name"])
    if not _SEGMENT_NAME.fullmatch(name):
        raise _Malformed(f"segment name {name!r} leaves the directory")
    files = {
        str(file): FileEntry(_whole(entry["size"]), str(entry["sha256"]))
        for file, entry in value["files"].items()
    }
    entry = SegmentEntry(
        name=name,
        documents=_rows(value["documents"]),
        units=_rows(value["units"]),
        markers=_rows(value["markers"]),
        keys=_rows(value["keys"]),
        origins={str(origin): _rows(count) for origin, count in value["origins"].items()},
        files=files,
        dead=_dead(value["dead"], name) if value["dead"] is not None else None,
    )
    _check_files(entry, embedder)
    return entry


def _check_files(entry: SegmentEntry, embedder: EmbedderEntry | None) -> None:
    if unknown := entry.files.keys() - _FILE_NAMES:
        raise _Malformed(f"segment {entry.name}: {min(unknown)!r} is no file of this format")
    wanted = {*ARRAYS, *RECORDS} | ({VECTORS} if embedder else set())
    if missing := wanted - entry.files.keys():
        raise _Malformed(f"segment {entry.name}: {min(missing)} is missing")
    expected = {
        "documents.offsets": 8 * (entry.documents + 1),
        "units.offsets": 8 * (entry.units + 1),
        "markers.offsets": 8 * (entry.markers + 1),
        "documents.order": 4 * entry.documents,
        "documents.ranks": 4 * entry.documents,
        "documents.digests": 16 * entry.documents,
        "documents.units": 4 * (entry.documents + 1),
        "documents.markers": 4 * (entry.documents + 1),
        "markers.keys": 4 * (entry.markers + 1),
        "markers.tokens": 4 * entry.markers,
        "markers.costs": 4 * entry.markers,
        "markers.headers": 4 * entry.markers,
        "units.costs": 4 * entry.units,
        "postings.offsets": entry.files["terms.offsets"].size,
        "postings.weights": entry.files["postings.rows"].size,
        **({VECTORS: 4 * entry.keys * embedder.dimension} if embedder else {}),
    }
    for file, size in expected.items():
        if entry.files[file].size != size:
            raise _Malformed(f"segment {entry.name}: {file} has {entry.files[file].size} bytes, not {size}")


def _dead(value: dict[str, Any], segment: str) -> DeadEntry:
    match = _DEAD_NAME.fullmatch(str(value["name"]))
    if not match or match[2] != segment:
        raise _Malformed(f"dead rows {value['name']!r} are not of segment {segment}")
    entry = DeadEntry(
        match[0],
        _whole(value["size"]),
        str(value["sha256"]),
        *(_rows(value[name]) for name in ("documents", "units", "markers", "keys")),
    )
    if entry.size != entry.documents * int(DEAD_TYPE[-1]):
        raise _Malformed(f"dead rows {entry.name}: {entry.size} bytes for {entry.documents} documents")
    return entry


def _whole(value: Any, least: int = 0) -> int:
    if type(value) is not int or value < least:
        raise _Malformed(f"{value!r} is no whole number of at least {least}")
    return value


def _rows(value: Any) -> int:
    if _whole(value) > _MAXIMUM_ROWS:
        raise _Malformed(f"{value} rows are more than the format holds")
    return int(value)
