"""How a document is shown to a model: a prefix that stays the same, and windows of units to mark.

While a document is short the prefix is the whole of it, so that every name and date is resolved. Beyond
``prefix_tokens`` the prefix is the title and the outline, and a window brings its own units and some of
their neighbours: a whole-document prefix would make the cost grow with the square of the length.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import ceil
from typing import TYPE_CHECKING

from mrag_cli.ground.errors import UsageError
from mrag_cli.parts import tokens

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from mrag_cli.records.models import DocumentGroup, Unit

WINDOW_TOKENS = 8_000
"""Most tokens of units in a window, however large the model's output limit."""
_TAG_TOKENS = 4
_LONGEST_TITLE = 200
_REPLY_SHARE = 0.82
_ALIAS_SHARE = 0.2
_REPLY_BASE = 96
_OUTLINE_TOKENS = 800
_NEIGHBOUR_TOKENS = 600
_REASONING_TOKENS = 16_000
# Token counts are cl100k's; another model's own may be larger.
_CONTEXT_SHARE = 0.92


@dataclass(frozen=True, slots=True)
class Piece:
    """A unit as it is shown: whole, or one part of a unit that is too large for a window.

    Attributes:
        unit: the unit's number.
        text: what is shown of it.
        tokens: tokens of ``text`` and its tag.
        heading: heading path where it changes, unless the text holds it; else empty.
    """

    unit: int
    text: str
    tokens: int
    heading: str = ""

    def render(self) -> str:
        """Return the piece as the prompt shows it."""
        tagged = f"<{self.unit}> {self.text}"
        return f"[{self.heading}]\n{tagged}" if self.heading else tagged


@dataclass(frozen=True, slots=True)
class Limits:
    """What a prompt and a reply may take, in tokens.

    Attributes:
        prefix: largest document that is shown whole.
        context: the model's context.
        output: the model's output limit.
        instructions: tokens of the prompt without document and window.
        keys: keys wanted for each marker.
        reasons: whether the model spends reply tokens on reasoning.
    """

    prefix: int
    context: int
    output: int
    instructions: int
    keys: int = 1
    reasons: bool = False

    @property
    def usable(self) -> int:
        """Tokens of the context that are planned with."""
        return int(self.context * _CONTEXT_SHARE) - self.instructions

    def reply(self, shown: int) -> int:
        """Return the tokens that markers for ``shown`` tokens of units are expected to take."""
        return int(shown * (_REPLY_SHARE + _ALIAS_SHARE * (self.keys - 1))) + _REPLY_BASE

    def max_tokens(self, shown: int, prompt: int) -> int:
        """Return the limit for a reply to ``shown`` tokens of units, twice what is expected if it fits."""
        room = max(_REPLY_BASE, min(self.output, self.usable + self.instructions - prompt))
        return min(room, 2 * self.reply(shown) + (_REASONING_TOKENS if self.reasons else 0))

    def window(self, prefix: int, *, carried: bool) -> int:
        """Return the most tokens of units for which markers can be asked at once.

        Args:
            prefix: tokens of the prefix.
            carried: whether the window brings its units along, because the prefix does not hold them.

        Raises:
            UsageError: the context or the output limit is too small for any useful window.
        """
        share = 1.2 * (_REPLY_SHARE + _ALIAS_SHARE * (self.keys - 1))
        by_output = (self.output - 1.2 * _REPLY_BASE) / share
        free = self.usable - prefix - 1.2 * _REPLY_BASE
        # A small context has less room for neighbours; at most a quarter goes to them.
        by_context = (free - min(_NEIGHBOUR_TOKENS, free / 4)) / (1 + share) if carried else free / share
        return int(min(WINDOW_TOKENS, by_output, by_context))


_LEAST_WINDOW = 48


@dataclass(frozen=True, slots=True)
class Plan:
    """How one document is asked for.

    Attributes:
        prefix: what every request of this document begins with.
        prefix_tokens: its tokens.
        whole: whether the prefix is the whole document.
        pieces: the document's pieces in order.
        windows: runs of pieces; together they are ``pieces``.
        window_tokens: most tokens of pieces in a window.
        neighbour_tokens: most tokens of neighbours that a window brings along.
    """

    prefix: str
    prefix_tokens: int
    whole: bool
    pieces: tuple[Piece, ...]
    windows: tuple[tuple[Piece, ...], ...]
    window_tokens: int
    neighbour_tokens: int

    def carried(self, window: Sequence[Piece]) -> tuple[str, int]:
        """Return the text a window brings along, and its tokens; empty when the prefix holds the units."""
        if self.whole:
            return "", 0
        shown = self._with_neighbours(window)
        lines: list[str] = []
        previous: Piece | None = None
        for position in shown:
            piece = self.pieces[position]
            if previous is not None and position and self.pieces[position - 1] is not previous:
                lines.append("[…]")
            lines.append(piece.render())
            previous = piece
        return "\n".join(lines), sum(self.pieces[position].tokens for position in shown) + len(lines)

    def visible(self, window: Sequence[Piece]) -> frozenset[int]:
        """Return the numbers of the units that the request for a window shows."""
        if self.whole:
            return frozenset(piece.unit for piece in self.pieces)
        return frozenset(self.pieces[position].unit for position in self._with_neighbours(window))

    def _with_neighbours(self, window: Sequence[Piece]) -> list[int]:
        own = {id(piece) for piece in window}
        chosen = {position for position, piece in enumerate(self.pieces) if id(piece) in own}
        edge, left = set(chosen), self.neighbour_tokens
        while edge and left > 0:
            edge = {near for position in edge for near in (position - 1, position + 1)} - chosen
            edge = {position for position in edge if 0 <= position < len(self.pieces)}
            for position in sorted(edge):
                left -= self.pieces[position].tokens
                if left >= 0:
                    chosen.add(position)
            edge &= chosen
        return sorted(chosen)


def plan(group: DocumentGroup, limits: Limits) -> Plan:
    """Plan the requests for a document so that each fits the model's context and output limit.

    Raises:
        UsageError: the limits leave no room for units.
    """
    whole = _pieces(group.units, WINDOW_TOKENS)
    head = f"Title: {group.document.title[:_LONGEST_TITLE]}\nUnits: 1 to {len(group.units)}\n"
    total = sum(piece.tokens for piece in whole) + tokens.count(head)
    size = limits.window(total, carried=False)
    length = sum(piece.tokens - _TAG_TOKENS for piece in whole)
    if length <= limits.prefix and size >= min(total, 4 * _LEAST_WINDOW):
        prefix = head + "\n" + "\n".join(piece.render() for piece in whole)
        return Plan(prefix, total, True, whole, _split(whole, size), size, 0)
    outline = head + _outline(group.units, min(_OUTLINE_TOKENS, limits.usable // 8))
    outline_tokens = tokens.count(outline)
    size = limits.window(outline_tokens, carried=True)
    if size < _LEAST_WINDOW:
        raise UsageError(
            f"a context of {limits.context} tokens and replies of {limits.output} leave no room for units "
            f"beside {limits.instructions} tokens of instructions; check --context-tokens and --output-tokens"
        )
    pieces = _pieces(group.units, size)
    neighbours = int(min(_NEIGHBOUR_TOKENS, size / 2))
    return Plan(outline, outline_tokens, False, pieces, _split(pieces, size), size, neighbours)


def _pieces(units: Iterable[Unit], most: int) -> tuple[Piece, ...]:
    pieces: list[Piece] = []
    before: tuple[str, ...] = ()
    for unit in units:
        heading = ""
        if unit.heading and unit.heading != before and unit.heading[-1] not in unit.text:
            heading = " > ".join(name[:_LONGEST_TITLE] for name in unit.heading)
        before = unit.heading
        size = unit.tokens if unit.tokens or not unit.text else tokens.count(unit.text)
        texts = [unit.text] if size + _TAG_TOKENS <= most else list(_parts(unit.text, most - _TAG_TOKENS))
        for number, text in enumerate(texts):
            part = size if len(texts) == 1 else tokens.count(text)
            shown = heading if number == 0 else ""
            extra = _TAG_TOKENS + (tokens.count(shown) + 2 if shown else 0)
            pieces.append(Piece(unit.unit, text, part + extra, shown))
    return tuple(pieces)


def _parts(text: str, most: int) -> Iterable[str]:
    starts = tokens.boundaries(text)
    # A part's tokens, counted alone, may be a few more than in the whole; a tenth is left for that.
    step = max(1, most * 9 // 10)
    cuts = [*starts[::step], len(text)]
    return (text[start:end] for start, end in pairwise(cuts) if start < end)


def _split(pieces: Sequence[Piece], most: int) -> tuple[tuple[Piece, ...], ...]:
    """Return windows of near equal size, each of at most ``most`` tokens unless it is one piece."""
    left = sum(piece.tokens for piece in pieces)
    windows: list[tuple[Piece, ...]] = []
    start = 0
    while start < len(pieces):
        target = left / max(1, ceil(left / most))
        end, size = start, 0
        while end < len(pieces) and (end == start or size + pieces[end].tokens <= most) and size < target:
            size += pieces[end].tokens
            end += 1
        windows.append(tuple(pieces[start:end]))
        start, left = end, left - size
    return tuple(windows)


def halves(pieces: Sequence[Piece]) -> list[tuple[Piece, ...]]:
    """Return pieces in two runs of near equal size; one piece stays alone."""
    if len(pieces) < 2:
        return [tuple(pieces)]
    total, size = sum(piece.tokens for piece in pieces), 0
    for position, piece in enumerate(pieces[:-1], 1):
        size += piece.tokens
        if size * 2 >= total:
            return [tuple(pieces[:position]), tuple(pieces[position:])]
    return [tuple(pieces[:-1]), tuple(pieces[-1:])]


def first_of(pieces: Iterable[Piece], most: int) -> tuple[Piece, ...]:
    """Return the first pieces that have at most ``most`` tokens together, at least one if there is one."""
    chosen: list[Piece] = []
    size = 0
    for piece in pieces:
        size += piece.tokens
        if chosen and size > most:
            break
        chosen.append(piece)
    return tuple(chosen)


def _outline(units: Sequence[Unit], most: int) -> str:
    """Return the headings with the unit each begins at, the deepest levels left out until they fit."""
    entries: list[tuple[int, str, int]] = []
    before: tuple[str, ...] = ()
    for unit in units:
        for level, name in enumerate(unit.heading):
            if before[: level + 1] != unit.heading[: level + 1]:
                entries.append((level, name, unit.unit))
        before = unit.heading
    if not entries:
        return ""
    for deepest in range(max(level for level, _, _ in entries), -1, -1):
        lines = [
            f"{'  ' * level}{name[:_LONGEST_TITLE]} <{first}>"
            for level, name, first in entries
            if level <= deepest
        ]
        text = "Outline:\n" + "\n".join(lines) + "\n"
        if tokens.count(text) <= most:
            return text
    starts = tokens.boundaries(text)
    return text[: starts[most]].rsplit("\n", 1)[0] + "\n[…]\n" if most > 0 else ""


def numbers(units: Collection[int]) -> str:
    """Return unit numbers as a prompt names them: ``<1>-<4>, <7>``."""
    runs: list[tuple[int, int]] = []
    for number in sorted(units):
        if runs and number == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return ", ".join(f"<{first}>" if first == last else f"<{first}>-<{last}>" for first, last in runs)
