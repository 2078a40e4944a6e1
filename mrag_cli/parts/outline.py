"""A document's lines as paragraphs under their titles: what windows are cut from.

Three kinds of documents are told apart. Where the tagger found headings, they are taken as they are. Plain
text has headings that look like it: short lines above longer ones. Text of several pages, each announced by
a line such as ``Passage 3:`` with the page's title on the next line, has page titles.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mrag_cli.records.models import Document, Unit

HEADING_WIDTH = 24
"""The widest line that can be a heading without a mark; a CJK character counts 1, another word 2."""

TITLE_WIDTH = 50
"""The same for a page's title behind its announcement and for a document's first line."""

WRAP_LIMIT = 130
"""Lines of a paragraph that was wrapped by hand have at most this many code points."""

_PAGE = re.compile(r"(?:Passage|Document|Article|段落|文档|文章)\s*\[?\d+\]?\s*[:：]")
_MARK = re.compile(r"#{1,6}\s+(?=\S)")
_LIST = re.compile(r"(?:[-*+•·▪●◦‣–—]|\(?\d{1,3}[.)、．）]|[(（][\da-z]{1,3}[)）])\s*")
_FENCE = re.compile(r"(?:```|~~~)")
_CJK = re.compile("[\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7ff\uf900-\ufaff]")
_NO_HEADING = re.compile(r"https?://|www\.|[;；|]|\w[:：]\S|[.!?。！？…,，、:：]$")
_ENDED = re.compile(r"[.!?。！？…:：;；][\"'”’」』）)\]]*$")


@dataclass(frozen=True, slots=True)
class Source:
    """A document's text, put together again from its units.

    Attributes:
        text: the units' texts in order, with what white space the spans let expect between them.
        starts: where each unit's text begins in ``text``, in code points.
        units: the units.
    """

    text: str
    starts: tuple[int, ...]
    units: tuple[Unit, ...]

    def unit_at(self, offset: int) -> Unit:
        """Return the unit that the character at ``offset`` belongs to, or that ends before it."""
        return self.units[max(bisect_right(self.starts, offset) - 1, 0)]

    def pointers(self, start: int, end: int) -> tuple[int, ...]:
        """Return the numbers of the units that overlap ``text[start:end]``."""
        first = max(bisect_right(self.starts, start) - 1, 0)
        last = max(bisect_right(self.starts, end - 1), first + 1)
        return tuple(unit.unit for unit in self.units[first:last] if unit.text.strip())


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A run of text that belongs together: a prose paragraph, a list's entry, a table's row.

    Attributes:
        start: where it begins in the source's text.
        end: where it ends.
        title: title of its page, or of the document; empty where there is none.
        path: the section headings above it without the title, outermost first.
        rows: whether it is a line of code, a table or a list rather than prose.
        lead: where the heading lines that stand right before it begin, or ``start``.
    """

    start: int
    end: int
    title: str
    path: tuple[str, ...]
    rows: bool
    lead: int


def source_of(units: Sequence[Unit]) -> Source:
    """Put a document's text together again from its units."""
    pieces: list[str] = []
    starts: list[int] = []
    length = 0
    for before, unit in zip((None, *units), units, strict=False):
        gap = _gap(before, unit)
        starts.append(length + len(gap))
        pieces += (gap, unit.text)
        length += len(gap) + len(unit.text)
    return Source("".join(pieces), tuple(starts), tuple(units))


def _gap(before: Unit | None, unit: Unit) -> str:
    """Return the white space between two units, guessed where one character may be a space or a new line."""
    if before is None:
        return ""
    distance = unit.span[0] - before.span[1]
    if before.span == unit.span or distance < 0 or distance > 1:
        return "\n\n"
    if distance == 0:
        return ""
    return "\n" if _ENDED.search(before.text) or not unit.text[:1].islower() else " "


def paragraphs(document: Document, source: Source) -> list[Paragraph]:
    """Return the paragraphs of a document in order.

    A heading line is in no paragraph but in the ``lead`` of the next one; without a next one under it, it is
    a paragraph itself.
    """
    lines = _lines(source.text)
    reader = _Reader(document, source, lines)
    for position in range(len(lines)):
        reader.take(position)
    return reader.finished()


@dataclass(frozen=True, slots=True)
class _Line:
    start: int
    end: int
    text: str
    blank_before: bool


def _lines(text: str) -> list[_Line]:
    found: list[_Line] = []
    at, blank = 0, False
    for raw in text.split("\n"):
        line = raw.strip()
        if line:
            start = at + len(raw) - len(raw.lstrip())
            found.append(_Line(start, start + len(line), line, blank))
        blank = not line
        at += len(raw) + 1
    return found


class _Reader:
    """Takes lines one after the other and knows the titles that stand above them."""

    def __init__(self, document: Document, source: Source, lines: Sequence[_Line]) -> None:
        self._source = source
        self._lines = lines
        self._tagged = any(unit.heading for unit in source.units)
        self._pages = self._tagged and len({unit.heading[:1] for unit in source.units}) > 1
        self._title = self._document_title(document)
        self._stack: list[tuple[int, str]] = []
        self._pending: list[tuple[int, _Line]] = []
        self._awaits_title = False
        self._fenced = False
        self._wrapped_until = -1
        self._found: list[Paragraph] = []

    def _document_title(self, document: Document) -> str:
        """Return the document's title, also where the tagger had none but the first line is one."""
        title = document.title.strip()
        if title and title != document.doc and not _PAGE.match(title):
            self._pages = False
            return title
        if self._tagged or len(self._lines) < 2:
            return ""
        first, second = self._lines[:2]
        if second.blank_before and width(first.text) <= TITLE_WIDTH and _looks_like_heading(first.text):
            return first.text
        return ""

    def take(self, position: int) -> None:
        """Take the line at ``position``."""
        line = self._lines[position]
        titled, self._awaits_title = self._awaits_title and not line.blank_before, False
        if _FENCE.match(line.text):
            self._fenced = not self._fenced
        if position <= self._wrapped_until:
            return
        if self._fenced or _FENCE.match(line.text):
            self._body(line.start, line.end, rows=True)
        elif _PAGE.fullmatch(line.text):
            self._close_page()
            self._awaits_title = True
            self._title = ""
            self._pending = [(0, line)]
        elif titled:
            self._page_title(position)
        elif level := self._heading_level(position):
            self._heading(level, line)
        else:
            end = self._paragraph_end(position)
            self._wrapped_until = end
            rows = line.text.startswith("|") or bool(_LIST.match(line.text))
            self._body(line.start, self._lines[end].end, rows=rows)

    def finished(self) -> list[Paragraph]:
        """Return the paragraphs, the last headings included where nothing followed them."""
        self._close_page()
        return self._found

    def _page_title(self, position: int) -> None:
        line = self._lines[position]
        plain = _MARK.sub("", line.text, count=1)
        if self._tagged:
            # A unit can end within the first line, so only what the tagger read as the title is one.
            is_title = plain.rstrip(":") in self._source.unit_at(line.start).heading
        else:
            is_title = width(line.text) <= TITLE_WIDTH
        if is_title:
            self._title = plain
            self._pending.append((0, line))
        else:
            self._body(line.start, line.end, rows=False)

    def _heading_level(self, position: int) -> int:
        """Return 1 to 6 for a marked heading, 7 for one without a mark, 0 for a line that is none."""
        line = self._lines[position]
        mark = _MARK.match(line.text)
        plain = line.text[mark.end() :].rstrip("# ") if mark else line.text
        if self._title and plain == self._title and position < 2:
            return 1
        if self._tagged:
            heading = self._source.unit_at(line.start).heading
            return heading.index(plain) + 1 if plain in heading else 0
        if mark:
            return len(mark.group().rstrip())
        following = self._lines[position + 1] if position + 1 < len(self._lines) else None
        if following is None or width(plain) > HEADING_WIDTH or not _looks_like_heading(plain):
            return 0
        return 7 if width(following.text) > width(plain) and not _PAGE.fullmatch(following.text) else 0

    def _heading(self, level: int, line: _Line) -> None:
        if self._pending and self._pending[-1][0] >= level:
            self._close_headings()
        self._stack = [entry for entry in self._stack if entry[0] < level]
        text = _MARK.sub("", line.text, count=1).rstrip("# ")
        if text != self._title:
            self._stack.append((level, text))
        self._pending.append((level, line))

    def _close_page(self) -> None:
        if self._pending:
            self._close_headings()
        self._stack = []

    def _close_headings(self) -> None:
        """Make a paragraph of heading lines that nothing stands under."""
        start, end = self._pending[0][1].start, self._pending[-1][1].end
        self._pending = []
        self._body(start, end, rows=True)

    def _body(self, start: int, end: int, *, rows: bool) -> None:
        lead = self._pending[0][1].start if self._pending else start
        self._pending = []
        title, path = self._title, tuple(text for _, text in self._stack)
        if self._tagged:
            path = self._source.unit_at(start).heading
            if self._pages and path:
                title, path = path[0], path[1:]
            elif path[:1] == (title,):
                path = path[1:]
        self._found.append(Paragraph(start, end, title, path, rows, lead))

    def _paragraph_end(self, position: int) -> int:
        """Return the position of the last line of the paragraph that begins at ``position``.

        That is the same line, unless the lines up to the next blank one were wrapped by hand: all but the
        last about as long as the longest, and one of them not a sentence's end.
        """
        end = position
        while end + 1 < len(self._lines) and not self._lines[end + 1].blank_before:
            following = self._lines[end + 1].text
            if _LIST.match(following) or following.startswith(("|", "#", "```", "~~~")):
                break
            end += 1
        full = [line.text for line in self._lines[position:end]]
        lengths = [len(text) for text in full]
        wrapped = (
            bool(full)
            and max(lengths) <= WRAP_LIMIT
            and min(lengths) >= 0.6 * max(lengths)
            and max(lengths) >= len(self._lines[end].text) * 0.9
            and not all(_ENDED.search(text) for text in full)
            and min(map(width, full)) > HEADING_WIDTH / 2
        )
        return end if wrapped else position


def width(text: str) -> int:
    """Return how wide a line is: 1 for each CJK character, 2 for each other word."""
    characters = len(_CJK.findall(text))
    return characters + 2 * len(_CJK.sub(" ", text).split()) if characters else 2 * len(text.split())


def _looks_like_heading(text: str) -> bool:
    first = text[0]
    return bool(
        not _NO_HEADING.search(text)
        and (first.isupper() or first.isdigit() or _CJK.match(first) or first in "\"'“‘「《【（(")
    )
