"""Cosine-Chunking, a baseline: a chunk ends where two consecutive sentences are too unlike each other."""

from __future__ import annotations

from collections import Counter
from math import log, sqrt
from typing import TYPE_CHECKING

from mrag_cli.parts.cutting import Cut
from mrag_cli.parts.sentences import sentences
from mrag_cli.parts.terms import terms
from mrag_cli.parts.token_spans import TokenSpans

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

THRESHOLD = 0.35


def cosine_cuts(
    text: str,
    threshold: float = THRESHOLD,
    similarities: Callable[[Sequence[str]], Sequence[float]] | None = None,
) -> Iterator[Cut]:
    """Yield chunks of whole sentences; a new one begins where the similarity falls below ``threshold``.

    Args:
        text: the source.
        threshold: of the cosine of two consecutive sentences.
        similarities: returns the cosine of each sentence with the one after it (one fewer than sentences); by
            TF-IDF over the text's own sentences when None.
    """
    spans = sentences(text)
    token_spans = TokenSpans(text)
    alike = (similarities or lexical_similarities)([text[start:end] for start, end in spans])
    first = 0
    for last in range(len(spans)):
        if last + 1 == len(spans) or alike[last] < threshold:
            start, end = spans[first][0], spans[last][1]
            yield Cut(start, end, token_spans.exact(start, end))
            first = last + 1


def lexical_similarities(texts: Sequence[str]) -> list[float]:
    """Return the cosine of the TF-IDF vectors of each text and the next; 0 where one has no term."""
    counted = [Counter(terms(text)) for text in texts]
    frequency = Counter(term for counts in counted for term in counts)
    weights = {term: log((1 + len(texts)) / (1 + times)) + 1 for term, times in frequency.items()}
    vectors = [{term: times * weights[term] for term, times in counts.items()} for counts in counted]
    sizes = [sqrt(sum(weight * weight for weight in vector.values())) for vector in vectors]
    found = []
    for at in range(len(vectors) - 1):
        dot = sum(weight * vectors[at + 1].get(term, 0.0) for term, weight in vectors[at].items())
        both = sizes[at] * sizes[at + 1]
        found.append(dot / both if both else 0.0)
    return found


def vector_similarities(
    embed: Callable[[Sequence[str]], NDArray[np.float32]], batch: int = 256
) -> Callable[[Sequence[str]], list[float]]:
    """Return the similarities of `cosine_cuts` by an embedder.

    Args:
        embed: texts to vectors of unit length, float32, (texts, dimension).
        batch: texts a call.
    """

    def similarities(texts: Sequence[str]) -> list[float]:
        last: NDArray[np.float32] | None = None
        found: list[float] = []
        for at in range(0, len(texts), batch):
            vectors = embed(texts[at : at + batch])
            if last is not None:
                found.append(float((last * vectors[0]).sum()))
            found += (vectors[:-1] * vectors[1:]).sum(axis=1).tolist()
            last = vectors[-1]
        return found

    return similarities
