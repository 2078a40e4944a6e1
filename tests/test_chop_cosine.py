from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from mrag_cli.parts.chop.cosine import cosine_cuts, lexical_similarities, vector_similarities

TEXT = (
    "The pump moves water to the upper basin. The pump moves water at night. "
    "Bread is baked in the morning. Bread is sold in the morning."
)


def test_a_chunk_ends_where_sentences_are_unlike() -> None:
    """Alike sentences stay together, whole; unlike ones part."""
    found = [TEXT[cut.start : cut.end] for cut in cosine_cuts(TEXT, 0.2)]
    assert len(found) == 2
    assert found[0].endswith("at night.")
    assert found[1].startswith("Bread is baked")


def test_the_threshold_decides() -> None:
    """At 0 nothing is unlike; above 1 everything is."""
    assert len(list(cosine_cuts(TEXT, 0.0))) == 1
    assert len(list(cosine_cuts(TEXT, 1.1))) == 4
    assert list(cosine_cuts("", 0.35)) == []


def test_tf_idf_similarity() -> None:
    """The same words are alike, no common word is not, and no word at all counts as unlike."""
    assert lexical_similarities(["pump water", "pump water", "bread", "..."]) == pytest.approx([1, 0, 0])


def test_an_embedders_similarities_do_not_depend_on_batches() -> None:
    """Consecutive vectors are compared across the batches they came in."""

    def embed(texts: Sequence[str]) -> NDArray[np.float32]:
        angles = np.array([len(text) / 10 for text in texts])
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)

    texts = ["a", "bb", "cccc", "d", "eeeeee"]
    whole = vector_similarities(embed, 10)(texts)
    assert len(whole) == 4
    assert whole == pytest.approx(vector_similarities(embed, 2)(texts))
