"""Which of an index's products a question names, and whose keys are theirs (`parts.chop.product`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mrag_cli.parts.chop.product import DENSE_BONUS, ID_MARK, query_ids

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from mrag_cli.parts.store.lexical import Postings
    from mrag_cli.parts.store.segment import Segment
    from mrag_cli.parts.store.snapshot import Snapshot

_MARK = ID_MARK.encode()


def named_products(snapshot: Snapshot, question: str) -> tuple[str, ...]:
    """Return the ids of the live products that ``question`` names; none in an index without CHOP's.

    It reads the part of each segment's vocabulary that the ids make up, and depends on the live keys alone.
    """
    live = {
        term.decode()
        for segment in snapshot.segments
        for term, rows in _ids(segment.postings)
        if segment.live_keys is None or segment.live_keys[rows].any()
    }
    return tuple(query_ids(question, live)) if live else ()


def bonus(segment: Segment, products: Sequence[str]) -> NDArray[np.float32]:
    """Return what each key's cosine gains from being about one of ``products``: float32, (keys,)."""
    gains = np.zeros(segment.entry.rows.keys, np.float32)
    for product in products:
        gains[segment.postings_of(product)[0]] = DENSE_BONUS
    return gains


def _ids(postings: Postings) -> Iterator[tuple[bytes, NDArray[np.uint32]]]:
    """Yield the ids among a segment's terms with the key rows of each."""
    low, high = 0, len(postings.terms_offsets) - 1
    last = high
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if _term(postings, middle) < _MARK else (low, middle)
    while low < last and (term := _term(postings, low)).startswith(_MARK):
        start, end = postings.offsets[low : low + 2].tolist()
        yield term, postings.rows[start:end]
        low += 1


def _term(postings: Postings, number: int) -> bytes:
    start, end = postings.terms_offsets[number : number + 2].tolist()
    return postings.terms_text[start:end].tobytes()
