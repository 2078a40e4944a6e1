"""Vectors of texts without an embedder: weighted counts of their terms, hashed into so many places."""

from __future__ import annotations

import zlib
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from mrag_cli.parts.terms import query_terms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

DIMENSION = 1024


def term_vectors(texts: Sequence[str]) -> NDArray[np.float32]:
    """Return a vector of unit length for each text: float32, (texts, DIMENSION).

    A term counts ``(1 + ln tf) * ln(1 + n / df)`` with frequencies over ``texts``, so that vectors of one
    call compare with each other only. Terms share places where their hashes collide. A text without terms
    gets zeros.
    """
    counted = [Counter(query_terms(text)) for text in texts]
    frequency = Counter(term for counts in counted for term in counts)
    vectors = np.zeros((len(texts), DIMENSION), np.float32)
    for row, counts in enumerate(counted):
        for term, times in counts.items():
            weight = (1 + np.log(times)) * np.log(1 + len(texts) / frequency[term])
            place = zlib.crc32(term.encode())
            # One bit of the hash gives the sign, so that what collides cancels out on average.
            vectors[row, place % DIMENSION] += weight if place & 0x8000_0000 else -weight
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.where(norms == 0, 1, norms)).astype(np.float32)
