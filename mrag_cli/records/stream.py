r"""Marker streams: JSON lines in, documents out, and back.

One JSON object a line, UTF-8, ``\n`` only; a document's records stand together. Reading holds one
document at a time, plus 16 bytes and the id of each document seen, to catch a document that comes twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from mrag_cli.ground.errors import IndexUnsupported, InputError
from mrag_cli.records.lines import Fields, read_json_lines, shown
from mrag_cli.records.models import (
    STREAM_FORMAT,
    Deletion,
    Document,
    DocumentGroup,
    Foreign,
    Marker,
    StreamPart,
    Unit,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from mrag_cli.ground.report import Reporter

_DOCUMENT_FIELDS = frozenset({"type", "format", "doc", "sha256", "title", "units", "tokens", "meta"})
_UNIT_FIELDS = frozenset({"type", "doc", "unit", "text", "tokens", "heading", "span"})
_MARKER_FIELDS = frozenset(
    [
        "type",
        "doc",
        "key",
        "value",
        "pointers",
        "origin",
        "tokens",
        "aliases",
        "header",
        "model",
        "cnm",
        "flags",
    ]
)
# The papers and their guides write the same three fields under other names.
_MARKER_SYNONYMS = {
    "retrieval_key": "key",
    "info_value": "value",
    "paragraph_idx": "pointers",
    "k": "key",
    "v": "value",
    "p": "pointers",
}


def read_document(fields: Fields) -> Document:
    """Return the document record that a JSON object holds; raise InputError where it is not one."""
    stream_format = fields.count("format", STREAM_FORMAT)
    if stream_format > STREAM_FORMAT:
        raise IndexUnsupported(
            f"{fields.path}:{fields.line}: stream format {stream_format} is newer than {STREAM_FORMAT}, "
            "the newest this version reads; update mrag"
        )
    doc = fields.identifier("doc")
    return Document(
        doc=doc,
        sha256=fields.text("sha256", ""),
        title=fields.text("title", doc),
        units=fields.count("units", 0),
        tokens=fields.count("tokens", 0),
        meta=fields.mapping("meta"),
        extra=fields.rest(_DOCUMENT_FIELDS),
    )


def read_unit(fields: Fields) -> Unit:
    """Return the unit record that a JSON object holds; raise InputError where it is not one."""
    span = fields.numbers("span", (0, 0))
    if len(span) != 2 or not 0 <= span[0] <= span[1]:
        raise fields.error(f'field "span" is {shown(list(span))}; [start, end] in code points is expected')
    return Unit(
        doc=fields.identifier("doc"),
        unit=fields.count("unit", least=1),
        text=fields.text("text"),
        tokens=fields.count("tokens", 0),
        heading=fields.texts("heading"),
        span=(span[0], span[1]),
        extra=fields.rest(_UNIT_FIELDS),
    )


def read_marker(fields: Fields) -> Marker:
    """Return the marker record that a JSON object holds; raise InputError where it is not one."""
    if not _MARKER_SYNONYMS.keys().isdisjoint(fields.value):
        renamed = {_MARKER_SYNONYMS.get(name, name): value for name, value in fields.value.items()}
        fields = Fields(fields.path, fields.line, {**renamed, **_own_names(fields.value)})
    return Marker(
        doc=fields.identifier("doc"),
        key=fields.text("key"),
        value=fields.text("value"),
        pointers=tuple(sorted(set(fields.numbers("pointers")))),
        origin=fields.text("origin", "llm"),
        tokens=fields.count("tokens", -1, least=-1) if fields.value.get("tokens") is not None else None,
        aliases=fields.texts("aliases"),
        header=fields.text("header", ""),
        model=fields.text("model", "") or None,
        cnm=fields.mapping("cnm") or None,
        flags=fields.texts("flags"),
        extra=fields.rest(_MARKER_FIELDS),
    )


def _own_names(value: Mapping[str, Any]) -> dict[str, Any]:
    return {name: found for name, found in value.items() if name not in _MARKER_SYNONYMS}


class _Open:
    """The document whose records are being read."""

    __slots__ = ("digest", "document", "foreign", "line", "marker_lines", "markers", "units")

    def __init__(self, document: Document, line: int, raw: bytes) -> None:
        self.document = document
        self.line = line
        self.units: list[Unit] = []
        self.markers: list[Marker] = []
        self.marker_lines: list[int] = []
        self.foreign: list[tuple[int, Foreign]] = []
        from hashlib import blake2b  # OpenSSL takes 3 ms to load, and a query reads no stream

        self.digest = blake2b(raw, digest_size=16)

    def add(self, fields: Fields, raw: bytes) -> None:
        self.digest.update(b"\n" + raw)
        if fields.value["type"] == "unit":
            unit = read_unit(fields)
            self._check_owner(fields, unit.doc)
            if unit.unit != len(self.units) + 1:
                raise fields.error(
                    f"unit {unit.unit} of {self.document.doc!r} where unit {len(self.units) + 1} "
                    "is expected; units are numbered from 1 and stand in order"
                )
            self.units.append(unit)
            return
        marker = read_marker(fields)
        self._check_owner(fields, marker.doc)
        self.markers.append(marker)
        self.marker_lines.append(fields.line)

    def _check_owner(self, fields: Fields, doc: str) -> None:
        if doc != self.document.doc:
            raise fields.error(
                f"a {fields.value['type']} of {doc!r} among the records of {self.document.doc!r} "
                f"(line {self.line}); a document's records stand together, its document record first"
            )

    def add_foreign(self, raw: bytes) -> None:
        self.digest.update(b"\n" + raw)
        self.foreign.append((1 + len(self.units) + len(self.markers), Foreign(raw)))

    def close(self, path: str, *, check_pointers: bool) -> DocumentGroup:
        if self.units and len(self.units) != self.document.units:
            raise InputError(
                path,
                self.line,
                f"{self.document.doc!r} announces {self.document.units} units, {len(self.units)} follow; "
                "the stream was cut: make it again",
            )
        if check_pointers:
            for marker, line in zip(self.markers, self.marker_lines, strict=True):
                check_marker_pointers(marker, self.document.units, path, line)
        return DocumentGroup(
            self.document,
            tuple(self.units),
            tuple(self.markers),
            tuple(self.foreign),
            path,
            self.line,
            tuple(self.marker_lines),
        )


def check_marker_pointers(marker: Marker, units: int, path: str, line: int | None) -> None:
    """Check that a marker points to units of its document, numbered 1 to ``units``.

    Raises:
        InputError: it points to no unit or to one that is not there.
    """
    if not marker.pointers:
        raise InputError(path, line, "the marker points to no unit; `mrag validate` repairs the stream")
    wrong = [pointer for pointer in marker.pointers if not 1 <= pointer <= units]
    if wrong:
        raise InputError(
            path,
            line,
            f"pointer {wrong[0]} is out of range: {marker.doc!r} has units 1 to {units}; "
            "`mrag validate` repairs the stream",
        )


def read_stream(
    lines: Iterable[bytes], path: str, reporter: Reporter, *, check_pointers: bool = True
) -> Iterator[StreamPart]:
    """Read a marker stream document by document.

    Args:
        lines: the lines, as an open binary file yields them.
        path: the file as the user named it, ``<stdin>`` for standard input.
        reporter: told when a document comes twice with the same content (the second is left out).
        check_pointers: refuse pointers out of range; validation passes False and repairs them.

    Raises:
        InputError: malformed input, with path and line: not JSON, a missing or mistyped field, a pointer
            out of range, a unit or marker away from its document, a document cut short, or a document
            that comes twice with different content.
        IndexUnsupported: the stream's format is newer than this version reads.
    """
    current: _Open | None = None
    seen = _Seen(path, reporter)
    for number, raw, value in read_json_lines(lines, path):
        fields = Fields(path, number, value)
        kind = fields.text("type")
        if kind in ("unit", "marker"):
            if current is None:
                raise fields.error(
                    f"a {kind} before any document record; a document's records stand together"
                )
            current.add(fields, raw)
            continue
        if kind not in ("document", "deletion"):
            if current is None:
                yield Foreign(raw)
            else:
                current.add_foreign(raw)
            continue
        if current is not None:
            yield from seen.first(current.close(path, check_pointers=check_pointers), current.digest.digest())
        current = _Open(read_document(fields), number, raw) if kind == "document" else None
        if kind == "deletion":
            yield Deletion(fields.identifier("doc"), fields.rest(frozenset({"type", "doc"})))
    if current is not None:
        yield from seen.first(current.close(path, check_pointers=check_pointers), current.digest.digest())


class _Seen:
    """The documents of a stream so far, to catch one that comes twice."""

    __slots__ = ("_lines", "_path", "_reporter")

    def __init__(self, path: str, reporter: Reporter) -> None:
        self._path = path
        self._reporter = reporter
        self._lines: dict[str, tuple[int, bytes]] = {}

    def first(self, group: DocumentGroup, digest: bytes) -> Iterator[DocumentGroup]:
        """Yield ``group`` unless the same came before; raise if another of that id did."""
        doc = group.document.doc
        line, earlier = self._lines.setdefault(doc, (group.line, digest))
        if line == group.line:
            yield group
        elif earlier == digest:
            self._reporter.notice(f"{self._path}:{group.line}: {doc!r} again, as on line {line}; left out")
        else:
            raise InputError(
                self._path,
                group.line,
                f"{doc!r} comes twice with different content, first on line {line}; keep one of the two",
            )


def map_groups(
    parts: Iterable[StreamPart], change: Callable[[DocumentGroup], DocumentGroup]
) -> Iterator[StreamPart]:
    """Apply ``change`` to every document and pass everything else through in place."""
    for part in parts:
        yield change(part) if isinstance(part, DocumentGroup) else part


def document_json(document: Document) -> dict[str, Any]:
    """Return the JSON object of a document record."""
    return {
        "type": "document",
        "format": STREAM_FORMAT,
        "doc": document.doc,
        "sha256": document.sha256,
        "title": document.title,
        "units": document.units,
        "tokens": document.tokens,
        "meta": document.meta,
        **document.extra,
    }


def unit_json(unit: Unit) -> dict[str, Any]:
    """Return the JSON object of a unit record."""
    return {
        "type": "unit",
        "doc": unit.doc,
        "unit": unit.unit,
        "text": unit.text,
        "tokens": unit.tokens,
        "heading": unit.heading,
        "span": unit.span,
        **unit.extra,
    }


def marker_json(marker: Marker) -> dict[str, Any]:
    """Return the JSON object of a marker record; optional fields only where they are set."""
    record: dict[str, Any] = {
        "type": "marker",
        "doc": marker.doc,
        "key": marker.key,
        "value": marker.value,
        "pointers": marker.pointers,
        "origin": marker.origin,
    }
    if marker.tokens is not None:
        record["tokens"] = marker.tokens
    for name in ("aliases", "header", "model", "cnm", "flags"):
        if found := getattr(marker, name):
            record[name] = found
    return {**record, **marker.extra}


def write_lines(part: StreamPart) -> Iterator[bytes]:
    """Yield the lines of a document, deletion or foreign record, each with its newline."""
    if isinstance(part, Foreign):
        yield part.line + b"\n"
        return
    if isinstance(part, Deletion):
        yield _line({"type": "deletion", "doc": part.doc, **part.extra})
        return
    waiting = list(part.foreign)
    records = [document_json(part.document), *map(unit_json, part.units), *map(marker_json, part.markers)]
    for written, record in enumerate(records, 1):
        yield _line(record)
        while waiting and waiting[0][0] <= written:
            yield waiting.pop(0)[1].line + b"\n"
    for _, foreign in waiting:
        yield foreign.line + b"\n"


def _line(record: Mapping[str, Any]) -> bytes:
    return orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE)
