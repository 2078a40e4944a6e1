"""The order of markers in a ranking: the best score first, equal scores by (doc, position)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mrag_cli.parts.store.snapshot import Place

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from mrag_cli.parts.store.snapshot import Snapshot


def best(snapshot: Snapshot, scores: Sequence[NDArray[np.float32]], count: int) -> list[tuple[Place, float]]:
    """Return the ``count`` markers with the highest scores above 0.

    Args:
        snapshot: the open index.
        scores: for each segment float32, (markers,).
        count: how many.
    """
    numbers, rows, found = [], [], []
    for number, own in enumerate(scores):
        above = np.flatnonzero(own > 0)
        if len(above) > count:
            values = own[above]
            above = above[values >= np.partition(values, -count)[-count]]
        numbers.append(np.full(len(above), number))
        rows.append(above)
        found.append(own[above].astype(np.float64))
    if not found:
        return []
    return _ordered(snapshot, np.concatenate(numbers), np.concatenate(rows), np.concatenate(found), count)


def ordered(
    snapshot: Snapshot, places: Sequence[Place], scores: Sequence[float], count: int
) -> list[tuple[Place, float]]:
    """Return the ``count`` of some markers with the highest scores."""
    numbers, rows = np.array(places, np.int64).reshape(-1, 2).T
    return _ordered(snapshot, numbers, rows, np.array(scores, np.float64), count)


def _ordered(
    snapshot: Snapshot,
    numbers: NDArray[np.int64],
    rows: NDArray[np.int64],
    scores: NDArray[np.float64],
    count: int,
) -> list[tuple[Place, float]]:
    if not len(rows):
        return []
    ranks = np.empty(len(rows), np.int64)
    for number, segment in enumerate(snapshot.segments):
        own = numbers == number
        ranks[own] = segment.array("documents.ranks")[segment.documents_of(rows[own])]
    # Within a segment the ranks are the order of the ids; only ties between segments need the ids themselves.
    order = np.lexsort((rows, ranks, numbers, -scores))
    numbers, rows, scores = numbers[order], rows[order], scores[order]
    ends = [*(np.flatnonzero(scores[1:] != scores[:-1]) + 1).tolist(), len(scores)]
    result: list[tuple[Place, float]] = []
    start = 0
    for end in ends:
        score, left = float(scores[start]), count - start
        if numbers[start] == numbers[end - 1]:
            number = int(numbers[start])
            result.extend([(Place(number, row), score) for row in rows[start:end][:left].tolist()])
        else:
            tied = _by_position(snapshot, numbers[start:end], rows[start:end], left)
            result.extend([(place, score) for place in tied])
        if end >= count:
            break
        start = end
    return result


def _by_position(
    snapshot: Snapshot, numbers: NDArray[np.int64], rows: NDArray[np.int64], count: int
) -> list[Place]:
    """Return the first ``count`` of markers that are in order within each segment, reading few ids."""
    kept: list[tuple[str, int, Place]] = []
    for number, segment in enumerate(snapshot.segments):
        own = rows[numbers == number][:count]
        documents = segment.documents_of(own).tolist()
        names = {document: segment.document_id(document) for document in set(documents)}
        kept.extend(
            (names[document], row, Place(number, row))
            for document, row in zip(documents, own.tolist(), strict=True)
        )
    kept.sort(key=lambda entry: entry[:2])
    return [place for _, _, place in kept[:count]]
