"""The manifest: the sole commit point, and the owner of everything the libraries do not check.

Named tuples, because a data class takes five times as long to define and every query waits for it.
"""

from __future__ import annotations

import os
import re
import stat
import zlib
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from mrag_cli.ground.errors import IndexCorrupt, IndexMissing, IndexUnsupported
from mrag_cli.parts.store.layout import (
    ARRAYS_FILE,
    DEAD_TYPE,
    FORMAT,
    GRAPH,
    MANIFEST,
    OLDEST_READABLE,
    RECORDS,
    VECTOR_TYPES,
    VECTORS,
    Rows,
    array_places,
)

if TYPE_CHECKING:
    from pathlib import Path

DEFAULT_PIVOT = 24.0
"""Length pivot of an index that was created empty, in terms."""
_MAXIMUM_BYTES = 16 << 20
_MAXIMUM_ROWS = (1 << 32) - 1
_MAXIMUM_POSTINGS = 1 << 48
_MAXIMUM_GENERATION = 10**17
_MAXIMUM_DIMENSION = 1 << 16
_MOST = {"term_bytes": _MAXIMUM_POSTINGS, "postings": _MAXIMUM_POSTINGS}
_SEGMENT_NAME = re.compile(r"[1-9][0-9]{0,17}")
_DEAD_NAME = re.compile(r"([1-9][0-9]{0,17})/([1-9][0-9]{0,17})\.dead")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_CHECKSUM = b',\n  "checksum": '


class FileEntry(NamedTuple):
    """A file's size in bytes and SHA-256 as hex digits."""

    size: int
    sha256: str


class DeadEntry(NamedTuple):
    """The rows of a segment that are gone: ``name`` below ``segments/`` lists the document rows."""

    name: str
    size: int
    sha256: str
    documents: int
    units: int
    markers: int
    keys: int


class SegmentEntry(NamedTuple):
    """A segment: its folder below ``segments/``, its rows (dead ones included) and its files.

    Attributes:
        name: the folder's name, the number of the generation that wrote it.
        rows: how much of everything it holds.
        origins: number of markers of each origin, dead ones included.
        files: size and digest of each of its files.
        dead: which of its rows are gone, or None.
    """

    name: str
    rows: Rows
    origins: dict[str, int]
    files: dict[str, FileEntry]
    dead: DeadEntry | None = None

    def live(self, kind: str) -> int:
        """Return how many ``documents``, ``units``, ``markers`` or ``keys`` are not dead."""
        return int(getattr(self.rows, kind)) - (int(getattr(self.dead, kind)) if self.dead else 0)

    @property
    def size(self) -> int:
        """Bytes of all its files."""
        return sum(file.size for file in self.files.values()) + (self.dead.size if self.dead else 0)


class LexicalSettings(NamedTuple):
    """BM25's parameters: ``k1``, ``b``, and the length pivot in terms, in place of the mean key length."""

    k1: float = 0.9
    b: float = 0.4
    pivot: float = DEFAULT_PIVOT


class EmbedderEntry(NamedTuple):
    """The embedder whose vectors the index holds: its SPEC, and the vectors' dimension and type.

    Vectors are normalised to unit length; their inner product is the cosine.
    """

    name: str
    dimension: int
    dtype: str = "float32"
    metric: str = "cosine"
    normalised: bool = True

    @property
    def width(self) -> int:
        """Bytes of one vector."""
        return self.dimension * int(VECTOR_TYPES[self.dtype][-1])


class Manifest(NamedTuple):
    """Everything there is to know about an index before a segment is opened.

    Attributes:
        generation: raised by one with every commit.
        terms: version of the lexical terms (`mrag_cli.parts.terms.TERMS_VERSION`).
        encoding: name of the token encoding that costs are in.
        lexical: BM25's parameters.
        embedder: the embedder, or None for a lexical index.
        segments: the segments, oldest first.
        written_by: name and version of the program, for people.
        format: the index format.
    """

    generation: int
    terms: int
    encoding: str
    lexical: LexicalSettings
    embedder: EmbedderEntry | None
    segments: tuple[SegmentEntry, ...]
    written_by: str
    format: int = FORMAT

    def dumps(self) -> bytes:
        """Return the manifest as the bytes of its file: JSON whose last member is a CRC-32 of all before."""
        body = orjson.dumps(plain(self), option=orjson.OPT_INDENT_2).removesuffix(b"\n}")
        return b'%s%s"%08x"\n}\n' % (body, _CHECKSUM, zlib.crc32(body))


def plain(value: Any) -> Any:
    """Return a value of this module as JSON has it."""
    if isinstance(value, tuple):
        fields = getattr(value, "_fields", None)
        return {name: plain(getattr(value, name)) for name in fields} if fields else [*map(plain, value)]
    return {name: plain(entry) for name, entry in value.items()} if isinstance(value, dict) else value


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
    raw = _content(path, directory)
    try:
        value = orjson.loads(raw)
        found = _whole(value["format"])
        if not OLDEST_READABLE <= found <= FORMAT:
            raise IndexUnsupported(
                f"{path}: index format {found}; this version reads {OLDEST_READABLE} to {FORMAT}: "
                + ("update mrag" if found > FORMAT else "build the index again")
            )
        body, _, _ = raw.rpartition(_CHECKSUM)
        if value["checksum"] != f"{zlib.crc32(body):08x}":
            raise _Malformed("its checksum does not match")
        return _manifest(value)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        reason = str(error) if isinstance(error, _Malformed) else f"{type(error).__name__}: {error}"
        raise IndexCorrupt(
            f"{path}: not as it was written ({reason}); restore the directory from a copy or build it again"
        ) from None


def _content(path: Path, directory: Path) -> bytes:
    """Return the file's bytes; it may be anything, a pipe or a device too."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        raise IndexMissing(f"{directory}: no index there; `mrag index -o {directory}` makes one") from None
    except PermissionError:
        raise
    except OSError as error:
        raise IndexCorrupt(f"{path}: cannot be read ({error.strerror})") from None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > _MAXIMUM_BYTES:
            raise IndexCorrupt(f"{path}: no regular file of at most {_MAXIMUM_BYTES} bytes")
        return os.read(descriptor, _MAXIMUM_BYTES)
    finally:
        os.close(descriptor)


class _Malformed(ValueError):
    """The manifest contradicts itself."""


def _manifest(value: dict[str, Any]) -> Manifest:
    lexical = LexicalSettings(**{name: _number(value["lexical"][name]) for name in ("k1", "b", "pivot")})
    if not (0 <= lexical.k1 <= 100 and 0 <= lexical.b <= 1 and 0 < lexical.pivot <= 1e6):
        raise _Malformed(f"{lexical} is out of range")
    embedder = _embedder(value["embedder"]) if value["embedder"] is not None else None
    segments = tuple(_segment(entry, embedder) for entry in _list(value["segments"]))
    if len({segment.name for segment in segments}) != len(segments):
        raise _Malformed("a segment is named twice")
    generation = _whole(value["generation"], 1)
    if generation > _MAXIMUM_GENERATION or any(int(segment.name) > generation for segment in segments):
        raise _Malformed(f"generation {generation} is absurd, or older than a segment")
    return Manifest(
        generation=generation,
        terms=_whole(value["terms"], 1),
        encoding=_text(value["encoding"]),
        lexical=lexical,
        embedder=embedder,
        segments=segments,
        written_by=_text(value["written_by"]),
        format=value["format"],
    )


def _embedder(value: dict[str, Any]) -> EmbedderEntry:
    entry = EmbedderEntry(_text(value["name"]), _whole(value["dimension"], 1), _text(value["dtype"]))
    if entry.dtype not in VECTOR_TYPES or entry.dimension > _MAXIMUM_DIMENSION:
        raise _Malformed(f"vectors of {entry.dimension} x {entry.dtype}")
    if value["metric"] != "cosine" or value["normalised"] is not True:
        raise _Malformed("vectors that are not normalised")
    return entry


def _segment(value: dict[str, Any], embedder: EmbedderEntry | None) -> SegmentEntry:
    name = _text(value["name"])
    if not _SEGMENT_NAME.fullmatch(name):
        raise _Malformed(f"segment name {name!r} leaves the directory")
    rows = Rows(**{name: _rows(value["rows"][name], _MOST.get(name, _MAXIMUM_ROWS)) for name in Rows._fields})
    entry = SegmentEntry(
        name=name,
        rows=rows,
        origins={origin: _rows(count) for origin, count in value["origins"].items()},
        files={
            file: FileEntry(_whole(found["size"]), _digest(found["sha256"]))
            for file, found in value["files"].items()
        },
        dead=_dead(value["dead"], name, rows) if value["dead"] is not None else None,
    )
    if sum(entry.origins.values()) != rows.markers:
        raise _Malformed(f"segment {name}: its origins do not add up to its {rows.markers} markers")
    _check_files(entry, embedder)
    return entry


def _check_files(entry: SegmentEntry, embedder: EmbedderEntry | None) -> None:
    wanted = {ARRAYS_FILE, *RECORDS} | ({VECTORS} if embedder else set())
    if missing := wanted - entry.files.keys():
        raise _Malformed(f"segment {entry.name}: {min(missing)} is missing")
    if unknown := entry.files.keys() - wanted - ({GRAPH} if embedder else set()):
        raise _Malformed(f"segment {entry.name}: {min(unknown)!r} is no file of this format")
    expected = {ARRAYS_FILE: array_places(entry.rows)[1]}
    if embedder:
        expected[VECTORS] = entry.rows.keys * embedder.width
    for file, size in expected.items():
        if entry.files[file].size != size:
            raise _Malformed(f"segment {entry.name}: {file} has {entry.files[file].size} bytes, not {size}")
    if entry.rows.keys > entry.files["markers.jsonl"].size or entry.rows.keys < entry.rows.markers:
        raise _Malformed(f"segment {entry.name}: {entry.rows.keys} keys in {entry.rows.markers} markers")


def _dead(value: dict[str, Any], segment: str, rows: Rows) -> DeadEntry:
    match = _DEAD_NAME.fullmatch(_text(value["name"]))
    if not match or match[2] != segment:
        raise _Malformed(f"dead rows {value['name']!r} are not of segment {segment}")
    counts = {name: _rows(value[name]) for name in ("documents", "units", "markers", "keys")}
    entry = DeadEntry(match[0], _whole(value["size"]), _digest(value["sha256"]), **counts)
    if entry.size != entry.documents * int(DEAD_TYPE[-1]):
        raise _Malformed(f"dead rows {entry.name}: {entry.size} bytes for {entry.documents} documents")
    if any(count > getattr(rows, name) for name, count in counts.items()):
        raise _Malformed(f"dead rows {entry.name}: more than there are rows")
    return entry


def _text(value: Any) -> str:
    if type(value) is not str:
        raise _Malformed(f"{str(value)[:40]!r} is no text")
    return value


def _list(value: Any) -> list[Any]:
    if type(value) is not list:
        raise _Malformed(f"{str(value)[:40]!r} is no list")
    return value


def _number(value: Any) -> float:
    if type(value) not in (int, float):
        raise _Malformed(f"{str(value)[:40]!r} is no number")
    return float(value)


def _digest(value: Any) -> str:
    if not _SHA256.fullmatch(_text(value)):
        raise _Malformed(f"{value[:70]!r} is no SHA-256")
    return str(value)


def _whole(value: Any, least: int = 0) -> int:
    if type(value) is not int or value < least:
        raise _Malformed(f"{str(value)[:40]!r} is no whole number of at least {least}")
    return value


def _rows(value: Any, most: int = _MAXIMUM_ROWS) -> int:
    if _whole(value) > most:
        raise _Malformed(f"{value} rows are more than the format holds")
    return int(value)
