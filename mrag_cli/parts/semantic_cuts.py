"""Chunks that follow meaning: at breaks between unlike sentences, or by likeness to the document's summary.

Both need vectors: ``vectors`` takes texts and returns rows of unit length, an embedder's or
`mrag_cli.parts.term_vectors.term_vectors`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mrag_cli.parts.cutting import Cut, fixed_cuts
from mrag_cli.parts.sentences import sentences
from mrag_cli.parts.token_spans import TokenSpans

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    Vectors = Callable[[Sequence[str]], NDArray[np.float32]]

BREAK_PERCENTILE = 95
"""A break stands between sentences that are further apart than this share of all neighbours."""

_SUMMARY_SENTENCES = 5


def semantic_cuts(text: str, limit: int, vectors: Vectors) -> Iterator[Cut]:
    """Yield chunks of whole sentences that end where the text turns to something else.

    What lies between two sentences is the distance of the two before and the two after. The widest five per
    cent of the distances are breaks; where two breaks are more than ``limit`` tokens apart, the chunk ends at
    the widest distance in the second half of what fits.

    Args:
        text: the source.
        limit: most tokens of a chunk; a longer sentence is cut into windows.
        vectors: represents texts.

    Yields:
        Chunks in order, disjoint; every character that is not white space is in exactly one.
    """
    spans = TokenSpans(text)
    pieces = _pieces(text, limit, spans)
    if not pieces:
        return
    shown = [text[start:end] for start, end in pieces]
    pairs = vectors([" ".join(shown[max(0, at - 1) : at + 1]) for at in range(len(shown) + 1)])
    distances = 1 - np.einsum("ij,ij->i", pairs[:-2], pairs[2:])
    broad = np.percentile(distances, BREAK_PERCENTILE) if len(distances) else 0.0
    first = 0
    while first < len(pieces):
        last = _fitting(pieces, first, limit, spans)
        stops = [at for at in range(first, last) if distances[at] > broad]
        if stops:
            last = stops[0]
        elif last < len(pieces) - 1:
            half = [
                at
                for at in range(first, last + 1)
                if 2 * spans.exact(pieces[first][0], pieces[at][1]) >= limit or at == last
            ]
            last = max(half, key=lambda at: (distances[at], at))
        yield _cut(pieces, first, last, spans)
        first = last + 1


def pic_cuts(text: str, limit: int, vectors: Vectors, summary: str = "") -> Iterator[Cut]:
    """Yield chunks grouped by the document's summary, which serves as a pseudo-instruction (PIC).

    Sentences are told apart by whether they are more like the summary than the mean sentence is; neighbours
    on the same side stand together, up to ``limit`` tokens.

    Args:
        text: the source.
        limit: most tokens of a chunk; a longer sentence is cut into windows.
        vectors: represents texts.
        summary: of the document; made of its most central sentences when empty.

    Yields:
        Chunks in order, disjoint; every character that is not white space is in exactly one.
    """
    spans = TokenSpans(text)
    pieces = _pieces(text, limit, spans)
    if not pieces:
        return
    shown = [text[start:end] for start, end in pieces]
    if not summary.strip():
        summary = extractive_summary(shown, vectors)
    found = vectors([*shown, summary])
    likeness = found[:-1] @ found[-1]
    close = likeness >= likeness.mean()
    first = 0
    while first < len(pieces):
        end = _fitting(pieces, first, limit, spans)
        last = next((at - 1 for at in range(first, end + 1) if close[at] != close[first]), end)
        yield _cut(pieces, first, last, spans)
        first = last + 1


def extractive_summary(shown: Sequence[str], vectors: Vectors) -> str:
    """Return the five sentences nearest to the middle of all, in the order of the text."""
    if len(shown) <= _SUMMARY_SENTENCES:
        return " ".join(shown)
    found = vectors(shown)
    nearness = found @ found.mean(axis=0)
    best = sorted(np.argsort(-nearness, kind="stable")[:_SUMMARY_SENTENCES].tolist())
    return " ".join(shown[at] for at in best)


def _pieces(text: str, limit: int, spans: TokenSpans) -> list[tuple[int, int]]:
    """Return the spans of the sentences, those longer than ``limit`` tokens cut into windows."""
    found: list[tuple[int, int]] = []
    for start, end in sentences(text):
        if spans.exact(start, end) <= limit:
            found.append((start, end))
            continue
        part = text[start:end]
        cuts = fixed_cuts(part, limit, TokenSpans(part))
        found.extend((start + cut.start, start + cut.end) for cut in cuts)
    return found


def _fitting(pieces: Sequence[tuple[int, int]], first: int, limit: int, spans: TokenSpans) -> int:
    """Return the last piece up to which a chunk that begins with ``first`` has at most ``limit`` tokens."""
    last = first
    while last + 1 < len(pieces) and spans.exact(pieces[first][0], pieces[last + 1][1]) <= limit:
        last += 1
    return last


def _cut(pieces: Sequence[tuple[int, int]], first: int, last: int, spans: TokenSpans) -> Cut:
    start, end = pieces[first][0], pieces[last][1]
    return Cut(start, end, spans.exact(start, end))
