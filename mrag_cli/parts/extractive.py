"""The extractive extractor: markers without a model, deterministic and offline.

A marker's value is a window: whole sentences of one paragraph up to `WINDOW` tokens, verbatim. Its key is the
title, the section headings and the window's words; a title that is short is also its header, which a packed
context shows once above the windows of a page or document.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from mrag_cli.parts import tokens
from mrag_cli.parts.outline import Paragraph, paragraphs, source_of
from mrag_cli.parts.sentences import sentences
from mrag_cli.records.models import Marker

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mrag_cli.records.models import DocumentGroup

ORIGIN = "extractive"

WINDOW = 48
"""Tokens that the sentences of a window are packed up to."""

LONG = 64
"""A sentence of up to so many tokens stays whole, alone in its window."""

SHORT_LINE = 24
"""Neighbouring lines of at most this many tokens share a window."""

HEADER = 16
"""A title of more tokens is no header: it would take the place of half a value each time it is shown."""

_COMMA = re.compile(r"(?<=[,;:])\s+|(?<=[，；：、])\s*")
"""A comma inside a number, such as 448,000, is followed by no space."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """Text that a window takes whole or not at all."""

    start: int
    end: int
    tokens: int


@dataclass(frozen=True, slots=True)
class _Window:
    start: int
    end: int
    paragraph: Paragraph
    lead: int


def markers(group: DocumentGroup) -> tuple[Marker, ...]:
    """Return the extractive markers of a document, in its order.

    Guarantees: every unit that holds a letter or sign is pointed to; every value is words of the source in
    their order; the same group gives the same markers. 30 ms a document of 5,000 tokens.
    """
    source = source_of(group.units)
    windows = list(_windows(source.text, paragraphs(group.document, source)))
    values = [_value(source.text, window) for window in windows]
    titles = sorted({window.paragraph.title for window in windows})
    headers = {title for title, size in zip(titles, tokens.counts(titles), strict=True) if size <= HEADER}
    return tuple(
        Marker(
            doc=group.document.doc,
            key=_key(window.paragraph, value),
            value=value,
            pointers=source.pointers(window.lead, window.end),
            origin=ORIGIN,
            tokens=size,
            header=window.paragraph.title if window.paragraph.title in headers else "",
        )
        for window, value, size in zip(windows, values, tokens.counts(values), strict=True)
    )


def _value(text: str, window: _Window) -> str:
    value = text[window.start : window.end]
    return value if window.paragraph.rows else " ".join(value.split())


def _key(paragraph: Paragraph, value: str) -> str:
    above = [paragraph.title, *paragraph.path]
    return ": ".join([*filter(None, above), " ".join(value.split())])


def _windows(text: str, found: Sequence[Paragraph]) -> Iterator[_Window]:
    sizes = tokens.counts([text[paragraph.start : paragraph.end] for paragraph in found])
    waiting: list[Paragraph] = []
    total = 0
    for paragraph, size in zip(found, sizes, strict=True):
        joins = size <= SHORT_LINE and total + size <= WINDOW
        same = waiting and (waiting[-1].title, waiting[-1].path) == (paragraph.title, paragraph.path)
        if waiting and not (joins and same and paragraph.lead == paragraph.start):
            yield _joined(waiting)
            waiting, total = [], 0
        if size <= SHORT_LINE:
            waiting.append(paragraph)
            total += size
        elif size <= WINDOW:
            yield _joined([paragraph])
        else:
            yield from _cut(text, paragraph)
    if waiting:
        yield _joined(waiting)


def _joined(lines: Sequence[Paragraph]) -> _Window:
    first = lines[0]
    if len(lines) > 1:
        first = Paragraph(first.start, lines[-1].end, first.title, first.path, rows=True, lead=first.lead)
    return _Window(first.start, lines[-1].end, first, first.lead)


def _cut(text: str, paragraph: Paragraph) -> Iterator[_Window]:
    """Yield windows of whole sentences of a paragraph that is longer than a window."""
    start, end, total = paragraph.start, paragraph.start, 0
    lead = paragraph.lead
    for piece in _pieces(text, paragraph):
        if total and total + piece.tokens > WINDOW:
            yield _Window(start, end, paragraph, min(lead, start))
            start, total, lead = piece.start, 0, piece.start
        end = piece.end
        total += piece.tokens
    yield _Window(start, end, paragraph, min(lead, start))


def _pieces(text: str, paragraph: Paragraph) -> Iterator[_Piece]:
    """Yield the sentences of a paragraph, those longer than a window cut at commas, then at words."""
    offset = paragraph.start
    spans = [(offset + start, offset + end) for start, end in sentences(text[offset : paragraph.end])]
    for sentence in _sized(text, spans):
        if sentence.tokens <= LONG:
            yield sentence
            continue
        for clause in _sized(text, _split(text, sentence, _COMMA)):
            if clause.tokens <= LONG:
                yield clause
            else:
                yield from _by_tokens(text, clause)


def _sized(text: str, spans: Sequence[tuple[int, int]]) -> Iterator[_Piece]:
    sizes = tokens.counts([text[start:end] for start, end in spans])
    return (_Piece(start, end, size) for (start, end), size in zip(spans, sizes, strict=True))


def _split(text: str, piece: _Piece, separator: re.Pattern[str]) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    start = piece.start
    for match in separator.finditer(text, piece.start, piece.end):
        if match.start() > start and match.end() < piece.end:
            spans.append((start, match.start()))
            start = match.end()
    return [*spans, (start, piece.end)]


def _by_tokens(text: str, piece: _Piece) -> Iterator[_Piece]:
    """Yield a clause in parts of at most a window, cut between words where there are any."""
    words = [(m.start(), m.end()) for m in re.compile(r"\S+").finditer(text, piece.start, piece.end)]
    for word in _sized(text, words):
        if word.tokens <= WINDOW:
            yield word
            continue
        cuts = tokens.boundaries(text[word.start : word.end])
        marks = [*sorted({word.start + cuts[at] for at in range(0, len(cuts), WINDOW)}), word.end]
        yield from (_Piece(a, b, WINDOW) for a, b in pairwise(marks))
