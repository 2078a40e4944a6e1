"""The structure of a text: its headings, paragraphs, list entries, tables and code, as spans.

A scanner of lines, and no Markdown parser: it needs only where blocks begin and end, of any text at all,
and a parser's time would be many times that of counting the tokens.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

Markup = Literal["text", "markdown"]

Kind = Literal["heading", "prose", "table", "code"]


class Block(NamedTuple):
    """A block of a text.

    Attributes:
        start: its first character that is not white space, in code points.
        end: behind its last character that is not white space.
        kind: ``prose`` is a paragraph or a list's entry.
        level: a heading's level from 1 (outermost); 0 for everything else.
        title: a heading's words without markup; empty for everything else.
    """

    start: int
    end: int
    kind: Kind
    level: int = 0
    title: str = ""


_BLANK = re.compile(r"\n(?:[^\S\n]*\n)+")
_FENCE = re.compile(r"^(?:[ \t]*(?:[-*+>]|\d{1,9}[.)])?[ \t]*)(`{3,}(?=[^`\n]*$)|~{3,})", re.MULTILINE)
_FRONT = re.compile(r"---[ \t]*\n(?:.*\n)*?(?:---|\.\.\.)[ \t]*(?:\n|\Z)")
_FRONT_TITLE = re.compile(r"^title[ \t]*:[ \t]*(\S.*?)[ \t]*$", re.MULTILINE | re.IGNORECASE)
_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?[ \t]*$")
_CLOSING_HASHES = re.compile(r"(?:^|[ \t]+)#+[ \t]*$")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-{2,})[ \t]*$")
_ENTRY = re.compile(r"[ \t]*(?:[-*+•▪■●◦‣][ \t]|\d{1,9}[.)][ \t])")
_TABLE_RULE = re.compile(r"[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$")
# A line that starts anything but a paragraph; a text without one is cut at its blank lines alone.
_SPECIAL = re.compile(
    r"^(?: {0,3}#|[ \t]*[-*+•▪■●◦‣][ \t]|[ \t]*\d{1,9}[.)][ \t]|.*\||    |\t| {0,3}(?:=+|-{2,})[ \t]*$)",
    re.MULTILINE,
)
# LongBench's announcement of a page, whose title is the next line.
_PASSAGE = re.compile(r"^Passage \d+:[ \t]*\n[ \t]*(\S.*)?", re.MULTILINE)
# Wider than any hard-wrapped text: where one line is, each line is a paragraph.
_WRAPPED = 120
_INLINE = re.compile(
    r"!?\[([^\]\n]*)\](?:\([^)\n]*\)|\[[^\]\n]*\])|(?<!`)`+([^`\n]+)`+|\*{1,3}(?=\S)([^*\n]+?)\*{1,3}|(?<!\w)__?(?=\S)([^_\n]+?)__?(?!\w)"
)
_ANCHOR = re.compile(r"[ \t]*\{[#.][^}\n]*\}[ \t]*$")


def blocks(text: str, markup: Markup) -> list[Block]:
    r"""Return the blocks of ``text``.

    Args:
        text: the source, its lines ended by ``\n``.
        markup: ``markdown`` knows headings (``#`` and underlined), fenced and indented code, tables and
            lists; ``text`` knows lists alone. Both know the announcement of a page, ``Passage 3:`` and its
            title on the next line, as a heading.

    Returns:
        Ascending and disjoint; every character that is not white space is in exactly one, and each begins
        and ends with such a character.
    """
    found: list[Block] = []
    start = 0
    if markup == "markdown":
        if front := _FRONT.match(text):
            found += _block(text, 0, front.end(), "code")
            start = front.end()
        while fence := _FENCE.search(text, start):
            found += _passages(text, start, fence.start(), markup)
            start = _fence_end(text, fence)
            found += _block(text, fence.start(), start, "code")
    found += _passages(text, start, len(text), markup)
    return found


def title(text: str, found: list[Block]) -> str | None:
    """Return the title a Markdown text gives itself: in its front matter, else by a heading of level 1."""
    if (front := _FRONT.match(text)) and (named := _FRONT_TITLE.search(front.group())):
        written = named.group(1)
        if len(written) > 1 and written[0] == written[-1] and written[0] in "\"'":
            written = written[1:-1]
        if written.strip():
            return written.strip()
    return next(
        (
            block.title
            for block in found
            if block.level == 1 and block.title and not _PASSAGE.match(text, block.start)
        ),
        None,
    )


def _fence_end(text: str, fence: re.Match[str]) -> int:
    """Return where the code that ``fence`` opens ends: behind its closing fence, or at the text's end."""
    mark = fence.group(1)
    closing = re.compile(rf"^[ \t>]*{re.escape(mark[0])}{{{len(mark)},}}[ \t]*$", re.MULTILINE)
    closed = closing.search(text, fence.end())
    return closed.end() if closed else len(text)


def trimmed(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the span without the white space around it, unless there is nothing else."""
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    if start < end:
        yield start, end


def _block(text: str, start: int, end: int, kind: Kind) -> Iterator[Block]:
    for left, right in trimmed(text, start, end):
        yield Block(left, right, kind)


def _passages(text: str, start: int, end: int, markup: Markup) -> Iterator[Block]:
    for passage in _PASSAGE.finditer(text, start, end):
        yield from _paragraphs(text, start, passage.start(), markup)
        start = passage.end()
        for block in _block(text, passage.start(), start, "heading"):
            yield block._replace(level=1, title=(passage.group(1) or passage.group()).strip().rstrip(":"))
    yield from _paragraphs(text, start, end, markup)


def _paragraphs(text: str, start: int, end: int, markup: Markup) -> Iterator[Block]:
    """Yield the blocks between two offsets, outside fences."""
    while start < end:
        gap = _BLANK.search(text, start, end)
        stop = gap.start() if gap else end
        if start < stop:
            if _SPECIAL.search(text, start, stop) or stop - start > _WRAPPED:
                yield from _lines(text, start, stop, markup)
            else:
                yield from _block(text, start, stop, "prose")
        start = gap.end() if gap else end


def _lines(text: str, start: int, end: int, markup: Markup) -> Iterator[Block]:
    """Yield the blocks of lines with no blank one among them."""
    lines = _line_spans(text, start, end)
    markdown = markup == "markdown"
    if markdown and all(text.startswith(("    ", "\t"), left) for left, _ in lines):
        yield from _block(text, start, end, "code")
        return
    begun: int | None = None
    number = 0
    each = any(right - left > _WRAPPED for left, right in lines)
    while number < len(lines):
        left, right = lines[number]
        marked, used = _marked(text, lines, number, begun) if markdown else ([], 1)
        if marked or each or _ENTRY.match(text, left, right):
            # A heading's underline takes the line above with it.
            stop = min(left, marked[0].start) if marked else left
            if begun is not None and begun < stop:
                yield from _block(text, begun, stop, "prose")
            begun = None
        yield from marked
        if begun is None and not marked:
            begun = left
        number += used
    if begun is not None:
        yield from _block(text, begun, end, "prose")


def _marked(
    text: str, lines: list[tuple[int, int]], number: int, begun: int | None
) -> tuple[list[Block], int]:
    """Return the heading or table at a line, and how many lines from there it takes; else nothing and 1.

    Args:
        text: the source.
        lines: spans of lines.
        number: which of them, from 0.
        begun: where the paragraph begins that the line continues, or None.
    """
    left, right = lines[number]
    if heading := _heading(text, left, right):
        return [heading], 1
    if rows := _table_rows(text, lines, number):
        return list(_block(text, left, lines[number + rows - 1][1], "table")), rows
    above = lines[number - 1][0] if number else None
    if begun is not None and begun == above and _UNDERLINE.match(text, left, right):
        return list(_underlined(text, begun, left, right)), 1
    return [], 1


def _line_spans(text: str, start: int, end: int) -> list[tuple[int, int]]:
    spans = []
    while start < end:
        stop = text.find("\n", start, end)
        if stop < 0:
            stop = end
        spans.append((start, stop))
        start = stop + 1
    return spans


def _heading(text: str, left: int, right: int) -> Block | None:
    match = _HEADING.match(text, left, right)
    if not match:
        return None
    words = _CLOSING_HASHES.sub("", match.group(2) or "")
    start = match.start(1)
    end = start + len(text[start:right].rstrip())
    return Block(start, end, "heading", len(match.group(1)), plain(words))


def _underlined(text: str, begun: int, left: int, right: int) -> Iterator[Block]:
    """Yield the heading whose line starts at ``begun``, its underline from ``left`` to ``right``."""
    words = text[begun:left].strip()
    if _ENTRY.match(words) or words.startswith((">", "|")):
        yield from _block(text, begun, right, "prose")
        return
    level = 1 if "=" in text[left:right] else 2
    for block in _block(text, begun, right, "heading"):
        yield block._replace(level=level, title=plain(words))


def _table_rows(text: str, lines: list[tuple[int, int]], first: int) -> int:
    """Return how many lines from ``first`` on are a table; 0 for none."""
    if first + 1 >= len(lines) or text.find("|", *lines[first]) < 0:
        return 0
    left, right = lines[first + 1]
    if text.find("-", left, right) < 0 or not _TABLE_RULE.match(text, left, right):
        return 0
    rows = 2
    while first + rows < len(lines) and text.find("|", *lines[first + rows]) >= 0:
        rows += 1
    return rows


def plain(words: str) -> str:
    """Return a heading's words without inline Markdown: links, emphasis, code marks and anchors."""
    without = _INLINE.sub(
        lambda match: next((part for part in match.groups() if part), ""), _ANCHOR.sub("", words)
    )
    return " ".join(without.split())
