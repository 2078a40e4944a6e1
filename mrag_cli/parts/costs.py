"""What a text costs in a packed context: its tokens, and those with the separator after it."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from mrag_cli.parts.tokens import SEPARATOR, count

if TYPE_CHECKING:
    from collections.abc import Sequence

# How the encoding cuts text into the pieces that it looks for tokens in, for text that is all ASCII.
_PIECE = re.compile(
    r"'(?:[sdmtSDMT]|[lL][lL]|[vV][eE]|[rR][eE])|[^\r\nA-Za-z0-9]?[A-Za-z]+|[0-9]{1,3}"
    r"| ?[^\sA-Za-z0-9]+[\r\n]*|\s+\Z|\s*[\r\n]|\s+(?!\S)|\s",
    re.ASCII,
)
_PUNCTUATION = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~。！？…“”‘’」』）、，；："
_MOST_PIECES = 1 << 18
_LONGEST_PIECE = 32


class _Pieces(dict[str, int]):
    """The number of tokens of each piece met so far, forgotten when there are too many."""

    def __missing__(self, piece: str) -> int:
        tokens = count(piece)
        if len(piece) <= _LONGEST_PIECE:
            if len(self) >= _MOST_PIECES:
                self.clear()
            self[piece] = tokens
        return tokens


_pieces = _Pieces()


def tokens_of(text: str) -> int:
    """Return the number of tokens of a text, as `mrag_cli.parts.tokens.count` does; faster for ASCII.

    Words repeat, so that most pieces were counted before.
    """
    return sum(map(_pieces.__getitem__, _PIECE.findall(text))) if text.isascii() else count(text)


def costs(texts: Sequence[str]) -> tuple[list[int], list[int]]:
    """Return the tokens of each text, and of each text with the separator after it.

    The encoding splits a text after a run of letters or digits before it looks for tokens, so that where
    a text ends with punctuation after such a run, or with the run, only that ending needs counting again.
    """
    tokens = [tokens_of(text) for text in texts]
    return tokens, [_separated(text, own) for text, own in zip(texts, tokens, strict=True)]


def _separated(text: str, tokens: int) -> int:
    words = text.rstrip(_PUNCTUATION)
    last = words[-1:]
    if (last.isascii() and last.isalnum()) or "\u4e00" <= last <= "\u9fa5":
        return tokens + _difference(text[len(words) :])
    return count(text + SEPARATOR)


@lru_cache(maxsize=1 << 12)
def _difference(ending: str) -> int:
    return count(ending + SEPARATOR) - count(ending)


@lru_cache(maxsize=1 << 12)
def header_cost(header: str) -> int:
    """Return the tokens of a header's line above the values it stands for; none for no header."""
    return count(header + "\n") if header else 0
