"""Sentences: where they begin and end.

The boundaries are sentencex's, whose rules and abbreviations fit English, Chinese and other scripts; this
module keeps away from it what it cannot take and undoes the splits that leave a fragment behind.
"""

from __future__ import annotations

import re

# sentencex fails on some white space outside ASCII, so it sees a space there.
_ODD_SPACE = re.compile(r"[^\S\n\t ]")
# Its time grows with the square of the quotation marks that stand open, so it sees at most this many
# code points at a time, cut at a paragraph's end or at least at white space.
_WINDOW = 6000

_CLOSING = r"""["'”’」』》〉】）)\]}»›*_]"""
_CLOSERS = re.compile(_CLOSING + r"+")
# A sentence's end: its last mark with what closes after it, or a line's end.
_ENDED = re.compile(rf"(?:[.!?…。！？．｡‼⁇⁈⁉؟۔।॥።។၊။]{_CLOSING}*\s*(?:\[[\d, \-–]+\]\s*)*|\n\s*)\Z")
_BULLET = re.compile(r"[-*+•▪■●◦‣·–—]\s")
# What a sentence cannot end with when a word in small letters or a number follows.
_ABBREVIATED = re.compile(
    r"(?:^|[\s(\[])(?:al|approx|ca|cf|[Ee]qs?|et|[Ff]igs?|[Nn]os?|pp?|[Rr]efs?|[Ss]ects?|[Ss]ecs?|spp?|ssp|subsp|[Tt]abs?|"
    r"var|viz|[Vv]ols?|vs)\.\s*\Z"
)
_CONTINUES = re.compile(r"[(\[]?[a-z0-9]")
# The number of a list's entry, alone.
_ENUMERATOR = re.compile(r"[(（]?(?:\d{1,3}|[A-Za-z])(?:[.．)）、]\s*)\Z")
# A name's initial or a list's number with no space behind it.
_GLUED = re.compile(r"(?<![^\W_])(?:[A-Z]\.|\d{1,2}[.．])\Z")


def sentences(text: str) -> list[tuple[int, int]]:
    """Return the spans of the sentences of ``text``.

    Args:
        text: any text without lone surrogates. Blank lines end a sentence; a single line break does so only
            where the words do.

    Returns:
        Start and end of each in code points, ascending and disjoint. Every character that is not white
        space is in exactly one; none begins or ends with white space.
    """
    spans: list[tuple[int, int]] = []
    start = begun = ended = 0
    for end in _ends(text):
        piece = text[start:end]
        start = end
        body = piece.strip()
        if not body:
            continue
        left = end - len(piece.lstrip())
        right = left + len(body)
        if spans and not _is_plain(text[ended - 1], ended - begun, left - ended, body[0]):
            left = _repaired(text, spans, left, right)
            if left == right:
                ended = spans[-1][1]
                continue
            if _belong_together(text, spans[-1], left):
                left = spans.pop()[0]
        spans.append((left, right))
        begun, ended = left, right
    return spans


def _ends(text: str) -> list[int]:
    """Return where sentencex ends its sentences, each with the white space behind it."""
    from sentencex import get_sentence_boundaries

    plain = _ODD_SPACE.sub(" ", text)
    ends: list[int] = []
    start = 0
    while start < len(plain):
        end = _window_end(plain, start)
        found = get_sentence_boundaries("en", plain[start:end])
        ends += [start + sentence["end_index"] for sentence in found]
        start = end
    return ends


def _is_plain(mark: str, length: int, gap: int, first: str) -> bool:
    """Tell whether a boundary needs no second look: a mark, a space, and a capital or Chinese character.

    Args:
        mark: the last character before it.
        length: code points of the sentence before it.
        gap: code points of white space at it.
        first: the first character behind it.
    """
    if mark in ".!?":
        return gap > 0 and length > 6 and first.isupper()
    return mark in "。！？" and ("\u3400" <= first <= "\u9fff" or first.isupper())


def _window_end(text: str, start: int) -> int:
    if len(text) - start <= _WINDOW:
        return len(text)
    half, limit = start + _WINDOW // 2, start + _WINDOW
    for separator in ("\n\n", "\n", "。", ". ", " "):
        found = text.rfind(separator, half, limit)
        if found >= 0:
            return found + len(separator)
    return limit


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return start, end


def _repaired(text: str, spans: list[tuple[int, int]], left: int, right: int) -> int:
    """Give closing quotes and brackets that follow without a space back to the sentence before."""
    start, end = spans[-1]
    if end == left and (closing := _CLOSERS.match(text, left, right)):
        spans[-1] = (start, closing.end())
        return _trimmed(text, closing.end(), right)[0]
    return left


def _belong_together(text: str, before: tuple[int, int], left: int) -> bool:
    """Tell whether the boundary between ``before`` and the sentence that starts at ``left`` is none."""
    start, end = before
    between = text[end:left]
    if between.count("\n") > 1:
        return False
    tail = text[max(start, end - 24) : end]
    if _ENUMERATOR.fullmatch(text[start:left]) and "\n" not in between:
        return True
    if text[left] in ",;:，、；：":
        return True
    if not _ENDED.search(tail + between):
        return not _BULLET.match(text, left)
    if not between and _GLUED.search(tail):
        return True
    return bool(
        _ABBREVIATED.search(" " + tail if end - start <= 24 else tail) and _CONTINUES.match(text, left)
    )
