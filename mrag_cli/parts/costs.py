"""What a text costs in a packed context: its tokens, and those with the separator after it."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from mrag_cli.parts.tokens import SEPARATOR, count, counts

if TYPE_CHECKING:
    from collections.abc import Sequence

_PUNCTUATION = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~。！？…“”‘’」』）、，；："


def costs(texts: Sequence[str]) -> tuple[list[int], list[int]]:
    """Return the tokens of each text, and of each text with the separator after it.

    The encoding splits a text after a run of letters or digits before it looks for tokens, so that where
    a text ends with punctuation after such a run, or with the run, only that ending needs counting again.
    """
    tokens = counts(texts)
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
