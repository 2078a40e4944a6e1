"""Spans of a text as a document whose markers are the spans' own words: key and value at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mrag_cli.parts import tokens
from mrag_cli.records.models import Document, DocumentGroup, Marker, Unit

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mrag_cli.parts.cutting import Cut
    from mrag_cli.parts.sources import Source


def chunked(source: Source, cuts: Iterable[Cut], origin: str) -> DocumentGroup:
    """Return a document with a unit and a marker for each cut.

    Args:
        source: the document's text.
        cuts: spans of it.
        origin: the markers'.
    """
    units, markers = [], []
    for number, cut in enumerate(cuts, 1):
        words = source.text[cut.start : cut.end]
        value = words.strip()
        units.append(Unit(source.doc, number, words, cut.tokens, cut.heading, (cut.start, cut.end)))
        size = cut.tokens if value == words else tokens.count(value)
        markers.append(Marker(source.doc, value, value, (number,), origin, size))
    title = source.title or source.fallback_title or source.doc
    document = Document(source.doc, "", title, len(units), tokens.count(source.text), source.meta)
    return DocumentGroup(document, tuple(units), tuple(markers))
