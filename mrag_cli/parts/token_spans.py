"""Exact token counts of any span of a text that was encoded once.

Encoding is what cutting a text costs, so the whole text is encoded once and the counts of its parts are
read off. A part's own tokens differ from the whole text's only near its two ends: the encoding first splits a
text into words by a pattern that never looks back, so from the first place where both must split, the
splits agree up to the last such place. Only the short pieces outside these two places are encoded again.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from functools import lru_cache

from mrag_cli.parts.tokens import count, tokens_before

# The pattern takes letters as whole runs, so a run always ends where one of these follows a letter. They are
# listed, since Unicode versions differ on what a letter is.
_FOLLOWERS = " \n\t.,;:!?()[]{}<>|/*_-+=#\"'“”’，。！？、；：（）《》「」"
_RUN_END = re.compile(rf"[^\W\d_](?=[{re.escape(_FOLLOWERS)}])")
_REACH = 64


class TokenSpans:
    """A text and where its tokens end.

    Args:
        text: any text without lone surrogates.

    Attributes:
        counts: for each offset in the text, in code points from 0 to its length, how many of its tokens end
            at or before it.
    """

    __slots__ = ("_text", "counts")

    def __init__(self, text: str) -> None:
        self._text = text
        self.counts = tokens_before(text)

    @property
    def total(self) -> int:
        """Tokens of the whole text."""
        return self.counts[-1]

    def before(self, offset: int) -> int:
        """Return how many of the text's tokens end at or before ``offset``, in code points."""
        return self.counts[offset]

    def token_end(self, token: int) -> int:
        """Return where token number ``token``, from 0, ends in code points; past the last, the text's end."""
        return min(bisect_left(self.counts, token + 1), len(self._text))

    def exact(self, start: int, end: int) -> int:
        """Return the tokens of ``text[start:end]`` encoded by itself."""
        text = self._text
        if start == 0 and end == len(text):
            return self.counts[end]
        first = self._first_split(start, end)
        last = self._last_split(start, end)
        if first is None or last is None or first >= last:
            return count(text[start:end])
        tokens = _short_count(text[start:first]) + self.counts[last] - self.counts[first]
        return tokens + _short_count(text[last:end]) if last < end else tokens

    def _first_split(self, start: int, end: int) -> int | None:
        found = _RUN_END.search(self._text, start, min(end, start + _REACH))
        while found and not self._text[found.start()].isalpha():
            found = _RUN_END.search(self._text, found.end(), min(end, start + _REACH))
        return found.end() if found else None

    def _last_split(self, start: int, end: int) -> int | None:
        text = self._text
        for place in range(end if end < len(text) else end - 1, max(start, end - _REACH), -1):
            if text[place] in _FOLLOWERS and text[place - 1].isalpha():
                return place
        return None


_short_count = lru_cache(maxsize=1 << 16)(count)
