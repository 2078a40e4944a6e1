"""Exact token counts of any span of a text that was encoded once.

Encoding is what cutting a text costs, so the whole text is encoded once and the counts of its parts are
read off. A part's own tokens differ from the whole text's only near its two ends: the encoding first splits a
text into words by a pattern that never looks back, so from the first place where both must split, the
splits agree up to the last such place. Only the short pieces outside these two places are encoded again.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import lru_cache

from mrag_cli.parts.tokens import count, token_ends

# The pattern takes letters as whole runs, so a run always ends where one of these follows a letter. They are
# listed, since Unicode versions differ on what a letter is.
_FOLLOWERS = frozenset(" \n\t.,;:!?()[]{}<>|/*_-+=#\"'“”’，。！？、；：（）《》「」")
_REACH = 64


class TokenSpans:
    """A text and the ends of its tokens.

    Args:
        text: any text without lone surrogates.
    """

    __slots__ = ("_ends", "_text")

    def __init__(self, text: str) -> None:
        self._text = text
        self._ends = token_ends(text)

    @property
    def total(self) -> int:
        """Tokens of the whole text."""
        return len(self._ends)

    def before(self, offset: int) -> int:
        """Return how many of the text's tokens end at or before ``offset``, in code points."""
        return bisect_right(self._ends, offset)

    def token_end(self, token: int) -> int:
        """Return where token number ``token``, from 0, ends in code points; past the last, the text's end."""
        return self._ends[token] if token < len(self._ends) else len(self._text)

    def exact(self, start: int, end: int) -> int:
        """Return the tokens of ``text[start:end]`` encoded by itself."""
        text = self._text
        if start == 0 and end == len(text):
            return len(self._ends)
        first = self._first_split(start, end)
        last = self._last_split(start, end)
        if first is None or last is None or first >= last:
            return count(text[start:end])
        head = _short_count(text[start:first])
        tail = _short_count(text[last:end]) if last < end else 0
        return head + self.before(last) - self.before(first) + tail

    def _first_split(self, start: int, end: int) -> int | None:
        text = self._text
        for place in range(start + 1, min(end, start + _REACH)):
            if text[place] in _FOLLOWERS and text[place - 1].isalpha():
                return place
        return None

    def _last_split(self, start: int, end: int) -> int | None:
        text = self._text
        latest = end if end < len(text) else end - 1
        for place in range(latest, max(start, end - _REACH), -1):
            if text[place] in _FOLLOWERS and text[place - 1].isalpha():
                return place
        return None


_short_count = lru_cache(maxsize=1 << 16)(count)
