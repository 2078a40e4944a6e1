"""Points of keys, values and questions."""

import numpy as np
from evaluations import Everything, dataset

from mrag_cli.parts.evaluation.geometry import geometry, projected
from mrag_cli.parts.term_vectors import term_vectors


def test_the_projection_keeps_the_widest_directions() -> None:
    """Points on a line stay on it, at their distances; the sign does not depend on chance."""
    line = np.array([[0, 0, 0], [3, 4, 0], [6, 8, 0]], np.float32)
    points = projected(line)
    assert np.allclose(points[:, 1], 0)
    assert np.allclose(points[:, 0], [-5, 0, 5])
    assert np.allclose(projected(line[::-1]), points[::-1])
    assert projected(np.array([[1.0], [2.0]], np.float32)).shape == (2, 2)
    assert projected(np.zeros((1, 4), np.float32)).tolist() == [[0, 0]]


def test_systems_without_markers_at_hand_are_left_out() -> None:
    """A ready index or LightRAG has no points; without a question about a document there are none at all."""
    found = geometry(dataset(), [Everything().system], term_vectors)
    assert found == {"dataset": "town", "document": "d0", "systems": []}
