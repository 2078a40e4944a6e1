"""The records of a marker stream (one JSON object a line) as frozen dataclasses."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

STREAM_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Document:
    """A document: what was cut into units.

    Attributes:
        doc: its id, stable and unique: the root's own name and the path below it.
        sha256: hex digest of the source text and the tagging settings.
        title: the document's title, or its id where it has none.
        units: number of units.
        tokens: tokens of the whole text.
        meta: the user's own fields, for ``--where``.
        extra: fields this version does not know; kept and written back.
    """

    doc: str
    sha256: str
    title: str
    units: int
    tokens: int
    meta: Mapping[str, Any] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Unit:
    """A numbered source unit ``s_{n,j}`` of a document (the paper's Eq. 1).

    Attributes:
        doc: id of its document.
        unit: number within the document, from 1.
        text: the source text of ``span``.
        tokens: tokens of ``text``.
        heading: headings above it, outermost first.
        span: start and end in the source text, in code points.
        extra: fields this version does not know; kept and written back.
    """

    doc: str
    unit: int
    text: str
    tokens: int
    heading: tuple[str, ...] = ()
    span: tuple[int, int] = (0, 0)
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Marker:
    """A marker ``m = (k, v, p)`` (the paper's Eq. 3).

    Attributes:
        doc: id of its document.
        key: the text that is indexed and searched.
        value: the text that is returned.
        pointers: numbers of the units the value was made from, ascending.
        origin: who wrote it: ``llm``, ``extractive``, ``fallback``, ``chop``, or a baseline's name.
        tokens: tokens of ``value``, or None when the stream did not say.
        aliases: further keys; each is indexed, the value is returned once.
        header: a title shown once above this marker's values in a packed context; empty for none.
        model: the language model that wrote it, or None.
        cnm: CHOP's category, nouns, model and confidence, or None.
        flags: what validation found.
        extra: fields this version does not know; kept and written back.
    """

    doc: str
    key: str
    value: str
    pointers: tuple[int, ...]
    origin: str
    tokens: int | None = None
    aliases: tuple[str, ...] = ()
    header: str = ""
    model: str | None = None
    cnm: Mapping[str, Any] | None = None
    flags: tuple[str, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def keys(self) -> tuple[str, ...]:
        """All keys under which the value is found, the main one first."""
        return (self.key, *self.aliases)


@dataclass(frozen=True, slots=True)
class Deletion:
    """The document ``doc`` is gone: an update removes it."""

    doc: str
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Foreign:
    """A record of a type no stage knows, passed through as the bytes it came in (without newline)."""

    line: bytes


@dataclass(frozen=True, slots=True)
class DocumentGroup:
    """A document with its units and markers, the amount a stage holds in memory at a time.

    Attributes:
        document: the document.
        units: its units, in order of their numbers.
        markers: its markers, in the order of the stream.
        foreign: records of unknown types that stood among them, each with the number of this
            group's own records before it.
        path: where it was read, for messages; empty when it was not read.
        line: line of the document record, from 1; 0 when it was not read.
        marker_lines: line of each marker that was read; shorter than ``markers`` when a stage added some.
    """

    document: Document
    units: tuple[Unit, ...] = ()
    markers: tuple[Marker, ...] = ()
    foreign: tuple[tuple[int, Foreign], ...] = ()
    path: str = ""
    line: int = 0
    marker_lines: tuple[int, ...] = ()


StreamPart = DocumentGroup | Deletion | Foreign
