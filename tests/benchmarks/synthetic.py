"""Synthetic markers of real shape: keys of about 20 tokens, values of about 60, English word counts.

The words are tokens of the encoding's own vocabulary, whose order is roughly that of their frequency; the
tail is made of pairs of them. Everything follows from a seed.
"""

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
import orjson
from numpy.typing import NDArray

from mrag_cli.parts.tokens import encoding

MARKERS_A_DOCUMENT = 20
_VOCABULARY = 200_000
_KEY_WORDS = 17
_VALUE_WORDS = 50
_EXPONENT = 1.07
_FUNCTION_WORDS = (
    "the of and to in a is that for it as was with be by on not he i this are or his from".split()
)


@lru_cache(maxsize=1)
def vocabulary() -> list[str]:
    """Return the words, the most frequent first."""
    tokens = [encoding().decode([number]) for number in range(256, 60_000)]
    bare = [token[1:] for token in tokens if token[0] == " "]
    simple = [token for token in bare if token.isascii() and token.isalpha()]
    words = list(dict.fromkeys([*_FUNCTION_WORDS, *(word.lower() for word in simple if len(word) > 1)]))
    choose = np.random.default_rng(1)
    first, second = choose.integers(500, len(words), (2, _VOCABULARY - len(words)))
    return words + [words[one] + words[two] for one, two in zip(first, second, strict=True)]


def numbers(count: int, length: int, seed: int) -> NDArray[np.int64]:
    """Return word numbers, (count, length), distributed by Zipf's law."""
    weights = 1 / (np.arange(_VOCABULARY) + 2.7) ** _EXPONENT
    shares = np.cumsum(weights / weights.sum())
    drawn = np.random.default_rng(seed).random((count, length))
    return np.minimum(np.searchsorted(shares, drawn), _VOCABULARY - 1)


def texts(count: int, length: int, seed: int) -> list[str]:
    """Return texts of some words each."""
    words = vocabulary()
    return [" ".join([words[number] for number in row]) for row in numbers(count, length, seed).tolist()]


def keys(count: int, seed: int = 2) -> list[str]:
    """Return marker keys."""
    return texts(count, _KEY_WORDS, seed)


def title(number: int) -> str:
    """Return the title of a document, two words that no other of the first 99 million has."""
    words = vocabulary()
    return f"{words[500 + number * 7919 % 9973]} {words[500 + number * 104729 % 9967]}".title()


def stream(markers: int, name: str = "doc", seed: int = 2) -> Iterator[bytes]:
    """Yield the lines of a marker stream, 20 markers and 10 units of about 120 tokens a document.

    Every fourth value names the title of another document.
    """
    block = 5_000
    for start in range(0, markers, block):
        count = min(block, markers - start)
        found = keys(count, seed + start)
        values = [f"{text.capitalize()}." for text in texts(count, _VALUE_WORDS, seed + start + 1)]
        for first in range(0, count, MARKERS_A_DOCUMENT):
            number = (start + first) // MARKERS_A_DOCUMENT
            own = slice(first, first + MARKERS_A_DOCUMENT)
            yield from _document(f"{name}/{number}", number, found[own], values[own])


def _document(doc: str, number: int, found: list[str], values: list[str]) -> Iterator[bytes]:
    for place in range(0, len(values), 4):
        values[place] = f"{title((number * 31 + place * 17) % (number + 1))}: {values[place]}"
    units = [" ".join(values[at : at + 2]) for at in range(0, len(values), 2)]
    yield _line(
        {
            "type": "document",
            "format": 1,
            "doc": doc,
            "sha256": doc,
            "title": title(number),
            "units": len(units),
        }
    )
    for number, text in enumerate(units, 1):
        yield _line({"type": "unit", "doc": doc, "unit": number, "text": text})
    for number, (key, value) in enumerate(zip(found, values, strict=True)):
        pointers = [number // 2 + 1]
        yield _line({"type": "marker", "doc": doc, "key": key, "value": value, "pointers": pointers})


def _line(record: dict[str, object]) -> bytes:
    return orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE)


def vectors(count: int, dimension: int, seed: int) -> NDArray[np.float32]:
    """Return vectors of unit length that lie, as embeddings do, near a space of fewer dimensions."""
    space = np.random.default_rng(3).standard_normal((48, dimension)) / (1 + np.arange(48)[:, None] / 8)
    choose = np.random.default_rng(seed)
    found = choose.standard_normal((count, 48)) @ space + 0.3 * choose.standard_normal((count, dimension))
    return (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)
