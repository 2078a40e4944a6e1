"""Page titles as link targets: which title a marker stands under, and which titles a text names.

A title is known by a 64-bit hash of its terms, so that an index needs one number a page to look it up, and
a text's phrases are compared with all titles at once.
"""

from __future__ import annotations

import re
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np

from mrag_cli.parts.terms import terms

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from mrag_cli.records.models import DocumentGroup

LONGEST = 8
"""A title of more terms is no link target: nobody names it word for word."""

_BASE = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1
_NOTE = re.compile(r"\s*[(（][^()（）]*[)）]\s*$")
_FILE = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,7}$")
_WORD = re.compile(r"[^\W_]+(?:['’.-][^\W_]+)*")


def page_titles(group: DocumentGroup) -> list[str]:
    """Return, for each marker of a document, the title of its page, or an empty string.

    That is its header; else the document's title, if it has one of its own; else the outermost heading of
    its first unit, if the document has several of them. Headings of sections are no titles: too many pages
    have a section of the same name.
    """
    document, units = group.document, group.units
    own = document.title.strip()
    if own == document.doc or _FILE.search(own):
        own = ""
    several = len({unit.heading[:1] for unit in units if unit.heading}) > 1
    found = []
    for marker in group.markers:
        title = marker.header.strip() or own
        if not title and several and marker.pointers and marker.pointers[0] <= len(units):
            title = next(iter(units[marker.pointers[0] - 1].heading), "")
        found.append(title)
    return found


def title_terms(title: str) -> tuple[str, ...]:
    """Return what a title is named by: its terms without a note in brackets at its end; () for no target."""
    found = tuple(terms(_NOTE.sub("", title) or title))
    return found if len(found) <= LONGEST and len("".join(found)) > 1 else ()


def title_hash(named: Sequence[str]) -> int:
    """Return the hash of a title's terms, below ``2**64``; 0 for none."""
    value = 0
    for term in named:
        value = (value * _BASE + _term_hash(term)) & _MASK
    return value


@lru_cache(maxsize=1 << 12)
def page_hash(title: str) -> int:
    """Return the hash that a page is found by through its title; 0 for no target."""
    return title_hash(title_terms(title))


def mentions(
    texts: Sequence[str], known: Callable[[NDArray[np.uint64]], NDArray[np.bool_]]
) -> list[dict[int, tuple[str, ...]]]:
    """Return the titles that each text names, the longest where several begin at a word, none inside another.

    A title of one term counts only where a word of it is written with a capital, a digit or no case at all:
    "Lilu" names the page of that title, "it" does not name the page "It".

    Args:
        texts: values or questions.
        known: tells for uint64 hashes which are those of titles.

    Returns:
        For each text, the terms of each title by its hash, in the order of the text.
    """
    by_text = [terms(text) for text in texts]
    every = [term for found in by_text for term in found]
    count = len(every)
    ends = np.repeat(np.cumsum([len(found) for found in by_text]), [len(found) for found in by_text])
    single = np.array([_term_hash(term) for term in every], np.uint64)
    hashes = np.zeros((min(LONGEST, count), count), np.uint64)
    hashes[:1] = single
    base, positions = np.uint64(_BASE), np.arange(count)
    for length in range(1, len(hashes)):
        hashes[length, : count - length] = hashes[length - 1, : count - length] * base + single[length:]
        # 0 stands for what goes beyond its text's end, and is the hash of no title
        hashes[length, positions + length >= ends] = 0
    there = np.zeros(hashes.shape, np.bool_)
    # in ascending order they are looked up in half the time
    order = np.argsort(hashes, axis=None)
    there.reshape(-1)[order] = known(hashes.reshape(-1)[order])
    there &= hashes != 0
    longest = (there * np.arange(1, len(hashes) + 1)[:, None]).max(axis=0, initial=0)
    named: list[dict[int, tuple[str, ...]]] = [{} for _ in texts]
    text_of = np.repeat(np.arange(len(texts)), [len(found) for found in by_text])
    free = 0
    for position in np.flatnonzero(longest).tolist():
        if position < free:
            continue
        length, number = int(longest[position]), int(text_of[position])
        free = position + length
        phrase = tuple(every[position:free])
        if length > 1 or phrase[0] in _capital_terms(texts[number]):
            named[number][int(hashes[length - 1, position])] = phrase
    return named


@lru_cache(maxsize=1 << 6)
def _capital_terms(text: str) -> set[str]:
    return {term for word in _WORD.findall(text) if not word[0].islower() for term in terms(word)}


@lru_cache(maxsize=1 << 16)
def _term_hash(term: str) -> int:
    # 0 stands for "no title", and past the end of a text
    return int.from_bytes(blake2b(term.encode(), digest_size=8).digest(), "little") | 1
