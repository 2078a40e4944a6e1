"""The lexical index's terms: what a text is matched by.

Unicode NFKC and case folding; words are runs of letters and digits with their combining marks; runs of
Chinese, Japanese and Korean characters become overlapping pairs; words of ASCII letters are reduced by
the Snowball stemmer for English. Terms of one character are kept.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TERMS_VERSION = 1
"""Raised whenever `terms` changes its mind about some text: an index is bound to its version."""

STOP_WORDS = frozenset(
    """
    a an and are as at be been but by can could did do does for from had has have he her his how i if in
    into is it its of on or she should so that the their them then there these they this to was we were
    what when where which who whom whose why will with would you your
    """.split()
)

_ASCII_WORD = re.compile(r"[a-z0-9]+(?:'s(?![a-z0-9]))?")
# A run of letters and digits, a possessive, or one other character that may turn out to be a mark.
_PIECE = re.compile(r"['\u2019]s(?![^\W_])|[^\W_]+|[^\x00-\x7f\w\s]")
_CJK = re.compile(
    "([\u1100-\u11ff\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U0001b000-\U0001b16f\U00020000-\U0003ffff]+)"
)


def terms(text: str) -> list[str]:
    """Return the terms of ``text``, in order, repeated as they are there."""
    if text.isascii():
        return [_stem(word) for word in _ASCII_WORD.findall(text.lower())]
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return [term for word in _words(folded) for term in _parts(word)]


def query_terms(question: str) -> list[str]:
    """Return the terms that a question is ranked by: without stop words, unless nothing else is left."""
    found = terms(question)
    return [term for term in found if term not in _stop_terms()] or found


@lru_cache(maxsize=1)
def _stop_terms() -> frozenset[str]:
    return frozenset(_stem(word) for word in STOP_WORDS)


def _words(folded: str) -> Iterator[str]:
    """Yield the runs of letters and digits; a combining mark joins what stands on its two sides."""
    word, end = "", -1
    for match in _PIECE.finditer(folded):
        piece = match.group()
        possessive = piece[0] in "'\u2019"
        if possessive and match.start() == end:
            continue
        if not piece[-1].isalnum() and unicodedata.category(piece[-1])[0] != "M":
            continue
        if match.start() != end and word:
            yield word
            word = ""
        word += piece[1:] if possessive else piece
        end = match.end()
    if word:
        yield word


def _parts(word: str) -> Iterator[str]:
    if word.isascii():
        yield _stem(word)
        return
    for part in _CJK.split(word):
        if not part:
            continue
        if not _CJK.match(part):
            yield _stem(part) if part.isascii() else part
        elif len(part) == 1:
            yield part
        else:
            yield from (part[start : start + 2] for start in range(len(part) - 1))


@lru_cache(maxsize=1 << 18)
def _stem(word: str) -> str:
    word = word.removesuffix("'s")
    return _stemmer()(word) if word.isalpha() else word


@lru_cache(maxsize=1)
def _stemmer() -> Callable[[str], str]:
    import Stemmer

    stem: Callable[[str], str] = Stemmer.Stemmer("english").stemWord
    return stem
