"""Texts into units: spans of at most so many tokens, along the text's structure or as strict windows."""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from mrag_cli.parts.blocks import entries, trimmed
from mrag_cli.parts.sentences import sentences

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from mrag_cli.parts.blocks import Block, Kind
    from mrag_cli.parts.token_spans import TokenSpans

    Span = tuple[int, int]
    Cutter = Callable[[str, int, int], Iterable[Span]]


class Cut(NamedTuple):
    """A unit's span in code points, the tokens of its text, and the headings above it, outermost first."""

    start: int
    end: int
    tokens: int
    heading: tuple[str, ...] = ()


def paragraph_cuts(
    text: str, structure: Iterable[Block], limit: int, token_spans: TokenSpans
) -> Iterator[Cut]:
    """Yield the units of ``text`` in paragraph mode.

    Blocks are packed together while they fit, never across a heading. A heading belongs to the unit that
    follows it; one with no text of its own joins the deeper heading below it, or is a unit if there is none.
    A block that is too long is cut between a list's entries, then between sentences (code and tables between
    lines); a sentence that is too long between lines, at commas, between words, and last between characters
    as a reader sees them.

    Args:
        text: the source.
        structure: its blocks, as `mrag_cli.parts.blocks.blocks` finds them.
        limit: tokens of a unit, at least 1; only a character that has more by itself exceeds it.
        token_spans: the token counts of ``text``.

    Yields:
        Units in order, disjoint, each beginning and ending with a character that is not white space; every
        such character of the blocks is in exactly one.
    """
    counts = token_spans.counts
    for section, heading in _sections(structure):
        start, end = section[0].start, section[-1].end
        if counts[end] - counts[start] <= limit and (tokens := token_spans.exact(start, end)) <= limit:
            yield Cut(start, end, tokens, heading)
            continue
        packer = _Packer(text, limit, token_spans)
        packer.fill(section, 0)
        packer.close()
        for start, end, tokens in packer.closed:
            yield Cut(start, end, tokens, heading)


def fixed_cuts(text: str, limit: int, token_spans: TokenSpans) -> Iterator[Cut]:
    """Yield the units of ``text`` in fixed mode: strict windows of ``limit`` tokens.

    A window has fewer tokens only where the next character has several, or at the end of the text. Windows
    touch, and a window of nothing but white space is left out.

    Args:
        text: the source.
        limit: tokens of a unit, at least 1; only a character that has more by itself exceeds it.
        token_spans: the token counts of ``text``.
    """
    start = 0
    while start < len(text):
        token = token_spans.before(start) + limit - 1
        end = max(start + 1, token_spans.token_end(token))
        tokens = token_spans.exact(start, end)
        while tokens > limit and end > start + 1:
            end -= 1
            tokens = token_spans.exact(start, end)
        while end < len(text) and tokens < limit:
            further = max(end + 1, token_spans.token_end(token_spans.before(end)))
            more = token_spans.exact(start, further)
            if more > limit:
                break
            end, tokens = further, more
        if not text[start:end].isspace():
            yield Cut(start, end, tokens)
        start = end


def _sections(structure: Iterable[Block]) -> Iterator[tuple[list[Block], tuple[str, ...]]]:
    """Yield headings with the blocks below them, and the path of headings above those."""
    section: list[Block] = []
    path: list[Block] = []
    for block in structure:
        if block.kind == "heading":
            # A heading right below a higher one is the beginning of that one's text.
            if section and not (section[-1].kind == "heading" and section[-1].level < block.level):
                yield section, _titles(path)
                section = []
            while path and path[-1].level >= block.level:
                path.pop()
            path.append(block)
        section.append(block)
    if section:
        yield section, _titles(path)


def _titles(path: list[Block]) -> tuple[str, ...]:
    return tuple([block.title for block in path if block.title])


class _Packer:
    """Packs the pieces of one section into units."""

    __slots__ = ("_bare", "_end", "_limit", "_start", "_text", "_token_spans", "_tokens", "closed")

    def __init__(self, text: str, limit: int, token_spans: TokenSpans) -> None:
        self._text = text
        self._limit = limit
        self._token_spans = token_spans
        self.closed: list[tuple[int, int, int]] = []
        # The open unit; it is bare while it holds nothing but headings.
        self._start = -1
        self._end = self._tokens = 0
        self._bare = False

    def close(self) -> None:
        """End the open unit, if there is one."""
        if self._start >= 0:
            self.closed.append((self._start, self._end, self._tokens))
            self._start = -1

    def fill(self, pieces: Sequence[Block] | Sequence[Span], depth: int, kind: Kind | None = None) -> None:
        """Add ``pieces`` to the open unit and to new ones; the last stays open.

        Args:
            pieces: what stays whole where it fits, in order: blocks, or spans of one.
            depth: how often they were cut: 0 for blocks.
            kind: the kind of the block that they are spans of.
        """
        before = self._token_spans.counts
        ends = [before[piece[1]] for piece in pieces]
        at = 0
        while at < len(pieces):
            start = self._start if self._start >= 0 else pieces[at][0]
            # The counts of the whole text tell where the limit is but for a token or two.
            reach = bisect_right(ends, before[start] + self._limit + 2, at)
            while reach > at and not self._take(start, pieces[reach - 1], kind):
                reach -= 1
            if reach > at:
                at = reach
                if at < len(pieces) and not self._bare:
                    self.close()
            elif self._start >= 0 and not (self._bare and self._worth_cutting(pieces[at], depth, kind)):
                self.close()
            else:
                self._cut(pieces[at], depth, kind)
                at += 1

    def _take(self, start: int, last: Block | Span, kind: Kind | None) -> bool:
        """Extend the unit that begins at ``start`` by all pieces up to ``last``, if that fits."""
        end = last[1]
        tokens = self._token_spans.exact(start, end)
        if tokens > self._limit:
            return False
        # A section's headings come first, so where the last piece is one, all are.
        self._bare = _kind_of(last, kind) == "heading"
        self._start, self._end, self._tokens = start, end, tokens
        return True

    def _worth_cutting(self, piece: Block | Span, depth: int, kind: Kind | None) -> bool:
        """Tell whether ``piece`` is to be cut so that the open heading has company: no whole sentence is."""
        cutters = _CUTTERS[_kind_of(piece, kind)]
        if depth == 0 or cutters[depth - 1] is entries:
            return True
        finest = depth >= len(cutters)
        return not finest and self._token_spans.exact(piece[0], piece[1]) > self._limit

    def _cut(self, piece: Block | Span, depth: int, kind: Kind | None) -> None:
        start, end = piece[0], piece[1]
        kind = _kind_of(piece, kind)
        cutters = _CUTTERS[kind]
        if depth >= len(cutters):
            # One character that has more tokens than a unit may have.
            self.closed.append((start, end, self._token_spans.exact(start, end)))
            return
        spans = iter(cutters[depth](self._text, start, end))
        while batch := list(islice(spans, _BATCH)):
            self.fill(batch, depth + 1, kind)


def _kind_of(piece: Block | Span, kind: Kind | None) -> Kind:
    return kind or piece[2]  # type: ignore[misc] # without a kind given, pieces are blocks


# How many pieces are held at a time: a text of one endless word has millions.
_BATCH = 4096
_CLAUSE_END = re.compile(r"[,;:](?=\s)|[，；：、–—…]+")
_STANZA = re.compile(r"\n\s*\n")
_LINE_END = re.compile(r"\n")
_WORD = re.compile(r"\S+")


def _sentences(text: str, start: int, end: int) -> Iterable[Span]:
    return [(start + left, start + right) for left, right in sentences(text[start:end])]


def _stanzas(text: str, start: int, end: int) -> Iterator[Span]:
    return _cut_behind(_STANZA, text, start, end)


def _lines(text: str, start: int, end: int) -> Iterator[Span]:
    return _cut_behind(_LINE_END, text, start, end)


def _clauses(text: str, start: int, end: int) -> Iterator[Span]:
    return _cut_behind(_CLAUSE_END, text, start, end)


def _cut_behind(separator: re.Pattern[str], text: str, start: int, end: int) -> Iterator[Span]:
    for match in separator.finditer(text, start, end):
        yield from trimmed(text, start, match.end())
        start = match.end()
    yield from trimmed(text, start, end)


def _words(text: str, start: int, end: int) -> Iterator[Span]:
    return (word.span() for word in _WORD.finditer(text, start, end))


def _characters(text: str, start: int, end: int) -> Iterator[Span]:
    import regex

    return (character.span() for character in regex.finditer(r"\X", text, pos=start, endpos=end))


_PROSE: tuple[Cutter, ...] = (entries, _sentences, _lines, _clauses, _words, _characters)
_CUTTERS: dict[Kind, tuple[Cutter, ...]] = {
    "heading": _PROSE,
    "prose": _PROSE,
    "table": (_lines, _sentences, _clauses, _words, _characters),
    "code": (_stanzas, _lines, _sentences, _clauses, _words, _characters),
}
