"""The quality of written keys: do they name what their values say, and find them?

Only keys that someone wrote are judged. A key that is cut from the text by design (of the extractive
extractor, a fallback, CHOP, a chunk baseline) has no question to name, and is as long as its value or longer.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from mrag_cli.parts.terms import query_terms, terms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mrag_cli.records.models import Marker

MISSING = "key-missing"
"""The key was blank or repeats the value: the marker has no key of its own."""
GENERIC = "key-generic"
"""The key names a topic or a section ("machine learning", "Introduction"), not what is said about it."""
MISSES = "key-misses"
"""Searching the document's values for the key finds another value first."""
DUPLICATE = "key-duplicate"
"""An earlier marker of the document has the same key."""
LONG = "key-long"
"""The key has more tokens than its value."""
FLAGS = (MISSING, GENERIC, MISSES, DUPLICATE, LONG)
"""All that may be wrong with a key, worst first."""

WRITTEN_ORIGIN = "llm"
"""The origin whose keys are judged."""

_K1, _B = 1.2, 0.75
# Names of sections and of ways to treat a topic: they say nothing about what a value holds.
_SECTION_WORDS = (
    "about abstract additional appendix background basic chapter conclusion content description detail "
    "discussion document example fact feature general important info information introduction key main "
    "method note other overview paragraph part passage point reference related result section summary "
    "text topic various"
)
_CJK_SECTIONS = re.compile(
    "介绍|简介|概述|概况|总结|结论|背景|摘要|信息|内容|相关|详情|方法|结果|引言|前言|说明|其他"
)
_QUESTION = re.compile(
    r"[?？]\s*$|^\W*(?:who|whom|whose|what|which|when|where|why|how)\b|什么|哪|谁|多少|几|如何|怎|为何|是否|吗",
    re.IGNORECASE,
)
_TOPIC_TERMS = 2


@dataclass(frozen=True, slots=True)
class KeyFindings:
    """What is wrong with one key.

    Attributes:
        flags: of `FLAGS`, worst first; empty when nothing is.
        rank: rank of the marker's own value among the document's for this key, from 1; 0 when not judged.
    """

    flags: tuple[str, ...] = ()
    rank: int = 0

    @property
    def badness(self) -> tuple[int, int]:
        """Sorts the worst first when reversed: the worst flag and their number, then the rank."""
        weight = sum(1 << (len(FLAGS) - FLAGS.index(flag)) for flag in self.flags)
        return weight, self.rank


def judge_keys(
    markers: Sequence[Marker], key_tokens: Sequence[int], value_tokens: Sequence[int]
) -> list[KeyFindings]:
    """Judge the keys of one document's markers.

    The value that a key must find first competes with the document's other written values and with its
    fallback values, which stand for units that no written value covers. Work grows with the number of
    markers times the postings that could overtake a marker's own value, which are few.

    Args:
        markers: all markers of the document.
        key_tokens: tokens of each marker's key.
        value_tokens: tokens of each marker's value.

    Returns:
        One finding a marker, in their order.
    """
    written = [index for index, marker in enumerate(markers) if marker.origin == WRITTEN_ORIGIN]
    findings = [KeyFindings()] * len(markers)
    if not written:
        return findings
    rivals = [i for i, marker in enumerate(markers) if marker.origin in (WRITTEN_ORIGIN, "fallback")]
    values = _Values([markers[index].value for index in rivals])
    places = {index: place for place, index in enumerate(rivals)}
    seen: set[str] = set()
    for index in written:
        marker = markers[index]
        rank = values.rank(marker.key, places[index])
        folded = " ".join(marker.key.casefold().split())
        if folded == " ".join(marker.value.casefold().split()):
            flags: tuple[str, ...] = (MISSING,)
        else:
            wrong = {
                GENERIC: is_generic(marker.key),
                MISSES: rank > 1,
                DUPLICATE: folded in seen,
                LONG: key_tokens[index] > value_tokens[index],
            }
            flags = tuple(flag for flag in FLAGS if wrong.get(flag))
        seen.add(folded)
        findings[index] = KeyFindings(flags, rank)
    return findings


def is_generic(key: str) -> bool:
    """Tell whether a key names no more than a topic.

    That is a key without any word that carries content, or, unless it is a question, with at most two
    (four Chinese characters) beside words such as "overview" that fit any section.
    """
    found = {term for term in query_terms(_CJK_SECTIONS.sub(" ", key)) if term not in _section_terms()}
    if not found or found <= _empty_terms():
        return True
    return len(found) <= _topic_size(key) and not _QUESTION.search(key)


def _topic_size(key: str) -> int:
    # Four Chinese characters, about two words, make three overlapping pairs.
    return _TOPIC_TERMS if key.isascii() else _TOPIC_TERMS + 1


@lru_cache(maxsize=1)
def _section_terms() -> frozenset[str]:
    return frozenset(terms(_SECTION_WORDS))


@lru_cache(maxsize=1)
def _empty_terms() -> frozenset[str]:
    """Terms that `query_terms` leaves in a key that has nothing but stop words."""
    from mrag_cli.parts.terms import STOP_WORDS

    return frozenset(terms(" ".join(STOP_WORDS)))


class _Values:
    """BM25 over one document's values, which answers one question: how many rank above a given one."""

    __slots__ = ("_bounds", "_postings", "_size")

    def __init__(self, values: Sequence[str]) -> None:
        counted = [Counter(terms(value)) for value in values]
        lengths = [found.total() for found in counted]
        mean = sum(lengths) / len(lengths) or 1.0
        self._size = len(values)
        self._postings: dict[str, dict[int, float]] = defaultdict(dict)
        for place, (found, length) in enumerate(zip(counted, lengths, strict=True)):
            pivot = _K1 * (1 - _B + _B * length / mean)
            for term, times in found.items():
                self._postings[term][place] = times * (_K1 + 1) / (times + pivot)
        self._bounds: dict[str, float] = {}
        for term, weights in self._postings.items():
            rarity = math.log(1 + (self._size - len(weights) + 0.5) / (len(weights) + 0.5))
            for place in weights:
                weights[place] *= rarity
            self._bounds[term] = max(weights.values())

    def rank(self, key: str, place: int) -> int:
        """Return the rank, from 1, of the value at ``place`` for ``key``; ties count for it.

        A value that shares no term with the key ranks last.
        """
        asked = sorted(
            (term for term in set(query_terms(key)) if term in self._bounds), key=self._bounds.__getitem__
        )
        own = sum(self._postings[term].get(place, 0.0) for term in asked)
        if not own:
            return self._size
        # Values that hold only the weakest of the terms cannot reach the own score: they are never looked at.
        reach, weak = 0.0, 0
        while weak < len(asked) and reach + self._bounds[asked[weak]] < own:
            reach += self._bounds[asked[weak]]
            weak += 1
        scores: dict[int, float] = defaultdict(float)
        for term in asked[weak:]:
            for other, weight in self._postings[term].items():
                scores[other] += weight
        for term in asked[:weak]:
            weights = self._postings[term]
            for other in scores:
                scores[other] += weights.get(other, 0.0)
        return 1 + sum(score > own + 1e-9 for score in scores.values())
