"""Vectors of terms."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mrag_cli.parts.term_vectors import DIMENSION, term_vectors


def test_likeness_follows_shared_terms() -> None:
    """Texts about the same are more alike than others; the stem counts, the order does not."""
    vectors = term_vectors(["herons nest on lakes", "on the lake nested a heron", "prices of copper rose"])
    assert vectors[0] @ vectors[1] > 0.99
    assert abs(vectors[0] @ vectors[2]) < 0.2


def test_nothing_gives_zeros() -> None:
    """A text without terms is like nothing."""
    assert not term_vectors(["...", "words"])[0].any()
    assert term_vectors([]).shape == (0, DIMENSION)


@given(st.lists(st.text(max_size=40), min_size=1, max_size=8))
def test_rows_have_unit_length(texts: list[str]) -> None:
    """Each row has length 1 or is zero, and the same texts give the same bits."""
    vectors = term_vectors(texts)
    lengths = np.linalg.norm(vectors, axis=1)
    assert all(abs(length - 1) < 1e-5 or length == 0 for length in lengths)
    assert (vectors == term_vectors(texts)).all()
