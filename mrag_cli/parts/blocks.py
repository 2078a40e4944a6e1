"""The structure of a text: its headings, paragraphs, lists, tables and code, as spans.

A scanner of lines, and no Markdown parser: it needs only where blocks begin and end, of any text at all,
and a parser's time would be many times that of counting the tokens.
"""

from __future__ import annotations

import re
from itertools import accumulate
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

Markup = Literal["text", "markdown"]

Kind = Literal["heading", "prose", "table", "code"]


class Block(NamedTuple):
    """A block of a text.

    Attributes:
        start: its first character that is not white space, in code points.
        end: behind its last character that is not white space.
        kind: ``prose`` is a paragraph or a list, see `entries`.
        level: a heading's level from 1 (outermost); 0 for everything else.
        title: a heading's words without markup; empty for everything else.
    """

    start: int
    end: int
    kind: Kind
    level: int = 0
    title: str = ""


_BLANK = re.compile(r"\n(?:[^\S\n]*\n)+")
_FENCE = re.compile(r"`{3,}(?=[^`\n]*$)|~{3,}", re.MULTILINE)
# What may stand before a fence on its line: indentation, and the mark of a list or a quotation.
_BEFORE_FENCE = re.compile(r"[ \t]{0,40}(?:(?:[-*+>]|\d{1,9}[.)])[ \t]{1,40}){0,3}")
_FRONT = re.compile(r"---[ \t]*\n(?=[\w\"'#-]+[ \t]*:|#)(?:.*\n){1,200}?(?:---|\.\.\.)[ \t]*(?:\n|\Z)")
_FRONT_TITLE = re.compile(r"^title[ \t]*:[ \t]*(\S.*)", re.MULTILINE | re.IGNORECASE)
_ENTRY = re.compile(r"(?:[-*+•▪■●◦‣]|\d{1,9}[.)])[ \t]")
_ENTRY_STARTS = frozenset("-*+•▪■●◦‣0123456789")
_INDENTS = ("    ", "\t")
_TABLE_RULE = frozenset("|-: \t")
# What a heading or its underline begins with.
_MARKS = frozenset("#=-")
_MARKED_LINE = re.compile(r"^[^\S\n]*[#=-]|\|", re.MULTILINE)
# LongBench's announcement of a page, whose title is the next line.
_PASSAGE = re.compile(r"^Passage \d+:[ \t]*(?:\n[ \t]*(\S.{0,150}))?$", re.MULTILINE)
# Wider than any hard-wrapped text: where one line is, each line is a paragraph.
_WRAPPED = 120
# A longer line is a paragraph, whatever it begins with.
_LONGEST_HEADING = 400
_INLINE = re.compile(
    r"!?\[([^\]\n]*)\](?:\([^)\n]*\)|\[[^\]\n]*\])|(?<!`)`+([^`\n]+)`+|"
    r"\*{1,3}(?=\S)([^*\n]+?)\*{1,3}|(?<!\w)__?(?=\S)([^_\n]+?)__?(?!\w)"
)
_INLINE_MARKS = frozenset("[`*_{")
_ANCHOR = re.compile(r"[ \t]*\{[#.][^}\n]*\}[ \t]*$")


def blocks(text: str, markup: Markup) -> Iterator[Block]:
    r"""Yield the blocks of ``text``.

    Args:
        text: the source, its lines ended by ``\n``.
        markup: ``markdown`` knows headings (``#`` and underlined), fenced and indented code, and tables;
            ``text`` knows paragraphs alone. Both know the announcement of a page, ``Passage 3:`` and its
            title on the next line, as a heading.

    Yields:
        Blocks ascending and disjoint; every character that is not white space is in exactly one, and each
        begins and ends with such a character.
    """
    start = 0
    if markup == "markdown":
        if front := _FRONT.match(text):
            yield from _block(text, 0, front.end(), "code")
            start = front.end()
        for left, right in _fences(text, start):
            yield from _passages(text, start, left, markup)
            yield from _block(text, left, right, "code")
            start = right
    yield from _passages(text, start, len(text), markup)


def title(text: str, found: Iterable[Block]) -> str | None:
    """Return the title a Markdown text gives itself: in its front matter, else by a heading of level 1.

    No more of its blocks are looked at than it takes.
    """
    if (front := _FRONT.match(text)) and (named := _FRONT_TITLE.search(front.group())):
        written = named.group(1).strip()
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


def _fences(text: str, start: int) -> Iterator[tuple[int, int]]:
    """Yield where fenced code begins and ends; a fence that nothing closes reaches to the text's end."""
    if "```" not in text and "~~~" not in text:
        return
    while fence := _FENCE.search(text, start):
        start = fence.end()
        line = text.rfind("\n", 0, fence.start()) + 1
        if not _BEFORE_FENCE.fullmatch(text, line, fence.start()):
            continue
        mark = fence.group()
        closing = re.compile(rf"^[ \t>]*{mark[0]}{{{len(mark)},}}[ \t]*$", re.MULTILINE)
        closed = closing.search(text, start)
        start = closed.end() if closed else len(text)
        yield line, start


def trimmed(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the span without the white space around it, unless there is nothing else."""
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    if start < end:
        yield start, end


def _block(text: str, start: int, end: int, kind: Kind) -> tuple[Block, ...]:
    """Return what is between two offsets as a block, none if it is white space."""
    piece = text[start:end]
    if body := piece.strip():
        left = end - len(piece.lstrip())
        return (Block(left, left + len(body), kind),)
    return ()


def _passages(text: str, start: int, end: int, markup: Markup) -> Iterator[Block]:
    if text.find("Passage ", start, end) >= 0:
        for passage in _PASSAGE.finditer(text, start, end):
            yield from _paragraphs(text, start, passage.start(), markup)
            start = passage.end()
            words = (passage.group(1) or passage.group()).strip().rstrip(":")
            left, right = next(trimmed(text, *passage.span()))
            yield Block(left, right, "heading", 1, words)
    yield from _paragraphs(text, start, end, markup)


def _paragraphs(text: str, start: int, end: int, markup: Markup) -> Iterator[Block]:
    """Yield the blocks between two offsets, outside fences."""
    found = _marked_blocks if markup == "markdown" else _prose
    for gap in _BLANK.finditer(text, start, end):
        yield from found(text, start, gap.start())
        start = gap.end()
    yield from found(text, start, end)


def _prose(text: str, start: int, end: int) -> Sequence[Block]:
    return _block(text, start, end, "prose")


def _marked_blocks(text: str, start: int, end: int) -> Sequence[Block]:
    """Return the blocks of Markdown between two offsets with no blank line between them."""
    if not (text.startswith(_INDENTS, start, end) or _MARKED_LINE.search(text, start, end)):
        return _prose(text, start, end)
    lines = text[start:end].split("\n")
    if lines[0].startswith(_INDENTS) and all(line.startswith(_INDENTS) for line in lines):
        return _block(text, start, end, "code")
    if len(lines) == 1 and (heading := _heading(lines[0], start)):
        return (heading,)
    candidates = [n for n, line in enumerate(lines) if line.lstrip()[:1] in _MARKS or "|" in line]
    found: list[Block] = []
    begun = 0
    if candidates:
        offsets = list(accumulate((len(line) + 1 for line in lines), initial=start))
        for number in candidates:
            # Lines before that are taken, as a table's.
            if number >= begun and (marked := _marked(lines, number, offsets, begun)):
                block, used = marked
                if begun < number:
                    found += _prose(text, offsets[begun], block.start)
                found.append(block)
                begun = number + used
        start = min(offsets[begun], end)
    if start < end:
        found += _prose(text, start, end)
    return found


def entries(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the spans of what a prose block is made of: a list's entries, and lines that are paragraphs.

    Lines are paragraphs where one of them is too long to have been wrapped by hand. Together the spans
    hold every character of the block that is not white space.
    """
    lines = text[start:end].split("\n")
    each = max(map(len, lines)) > _WRAPPED
    at = start
    for line in lines:
        if at > start and (each or _is_entry(line.lstrip())):
            yield from trimmed(text, start, at)
            start = at
        at += len(line) + 1
    yield from trimmed(text, start, end)


def _is_entry(line: str) -> bool:
    return line[:1] in _ENTRY_STARTS and _ENTRY.match(line) is not None


def _marked(lines: list[str], number: int, offsets: list[int], begun: int) -> tuple[Block, int] | None:
    """Return the heading or table at a line and how many lines from there it takes, if there is one.

    Args:
        lines: lines of the source.
        number: which of them, from 0.
        offsets: where each begins in the source.
        begun: the line where the paragraph begins that this one continues.
    """
    line = lines[number]
    stripped = line.strip()
    start = offsets[number] + len(line) - len(line.lstrip())
    if stripped.startswith("#"):
        if heading := _heading(line, offsets[number]):
            return heading, 1
    elif rows := _table_rows(lines, number):
        last = lines[number + rows - 1]
        return Block(start, offsets[number + rows - 1] + len(last.rstrip()), "table"), rows
    elif number == begun + 1 and len(stripped) > 1 and set(stripped) in ({"="}, {"-"}):
        above = lines[begun]
        words = above.strip()
        if words and len(words) <= _LONGEST_HEADING and not (words[0] in ">|" or _is_entry(words)):
            first = offsets[begun] + len(above) - len(above.lstrip())
            level = 1 if stripped[0] == "=" else 2
            return Block(first, start + len(stripped), "heading", level, plain(words)), 1
    return None


def _heading(line: str, offset: int) -> Block | None:
    """Return the heading that a line, which begins at ``offset``, marks with ``#``, if it is one."""
    stripped = line.strip()
    words = stripped.lstrip("#")
    level = len(stripped) - len(words)
    if not 1 <= level <= 6 or len(stripped) > _LONGEST_HEADING or line.startswith("    "):
        return None
    if words and words[0] not in " \t":
        return None
    start = offset + len(line) - len(line.lstrip())
    return Block(start, start + len(stripped), "heading", level, plain(_open_ended(words)))


def _open_ended(words: str) -> str:
    """Return a heading's words without the hashes that may close it."""
    words = words.strip()
    without = words.rstrip("#")
    return without if not without or without[-1] in " \t" else words


def _table_rows(lines: list[str], first: int) -> int:
    """Return how many lines from ``first`` on are a table; 0 for none."""
    if first + 1 >= len(lines) or "|" not in lines[first]:
        return 0
    rule = lines[first + 1]
    if "-" not in rule or not _TABLE_RULE.issuperset(rule):
        return 0
    rows = 2
    while first + rows < len(lines) and "|" in lines[first + rows]:
        rows += 1
    return rows


def plain(words: str) -> str:
    """Return a heading's words without inline Markdown: links, emphasis, code marks and anchors."""
    if _INLINE_MARKS.isdisjoint(words):
        return " ".join(words.split())
    without = _INLINE.sub(
        lambda match: next((part for part in match.groups() if part), ""), _ANCHOR.sub("", words)
    )
    return " ".join(without.split())
