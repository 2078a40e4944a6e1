"""Keys, values and questions of one document in two dimensions (the paper's Fig. 6a)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mrag_cli.parts.evaluation.systems import Collection, Context

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from mrag_cli.parts.evaluation.datasets import Dataset
    from mrag_cli.parts.evaluation.systems import System


def geometry(
    dataset: Dataset, systems: Sequence[System], vectors: Callable[[Sequence[str]], NDArray[np.float32]]
) -> dict[str, Any]:
    """Return the points of the first document that is asked about, by system.

    Args:
        dataset: its questions and documents.
        systems: whose markers are shown, if their keys differ from their values; of the others the first,
            to compare with.
        vectors: represents texts, float32, (texts, dimension).
    """
    question = next((one for one in dataset.questions if one.doc), None)
    if question is None:
        return {"systems": []}
    context = Context(dataset.sources[question.doc], question.names)
    questions = [one.text for one in dataset.questions if one.doc == question.doc]
    found = []
    compared = False
    for system in systems:
        if not system.drawable:
            continue
        system.prepare([context])
        with system.open(Collection((context,))) as index:
            markers = index.markers
        same = all(marker.key == marker.value for marker in markers)
        if not markers or (same and compared):
            continue
        compared = compared or same
        texts = [*(marker.key for marker in markers), *(marker.value for marker in markers), *questions]
        points = projected(vectors(texts)).round(4).tolist()
        count = len(markers)
        own = {"key": points[:count], "value": points[count : 2 * count], "question": points[2 * count :]}
        found.append({"system": system.name, "points": own})
    return {"dataset": dataset.name, "document": question.doc, "systems": found}


def projected(vectors: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return vectors on their two principal axes: float64, (texts, 2); the axes' signs are fixed."""
    centred = vectors.astype(np.float64) - vectors.mean(axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    axes = axes[:2] if len(axes) > 1 else np.vstack([axes, np.zeros_like(axes)])
    # The direction of an axis is arbitrary; its largest component is made positive.
    largest = np.take_along_axis(axes, np.abs(axes).argmax(axis=1)[:, None], axis=1)
    axes = axes * np.where(largest < 0, -1, 1)
    found: NDArray[np.float64] = centred @ axes.T
    return found
