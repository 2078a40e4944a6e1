"""Chunks that follow meaning."""

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrag_cli.parts.cutting import Cut
from mrag_cli.parts.semantic_cuts import extractive_summary, pic_cuts, semantic_cuts
from mrag_cli.parts.term_vectors import term_vectors
from mrag_cli.parts.tokens import count

BIRDS = " ".join(f"Herons and egrets nest near lake number {number}." for number in range(8))
METALS = " ".join(f"Copper and zinc prices rose in market number {number}." for number in range(8))
Cutter = Callable[[str, int], Iterator[Cut]]


def _semantic(text: str, limit: int) -> Iterator[Cut]:
    return semantic_cuts(text, limit, term_vectors)


def _pic(text: str, limit: int) -> Iterator[Cut]:
    return pic_cuts(text, limit, term_vectors)


def test_a_semantic_chunk_ends_where_the_subject_changes() -> None:
    """The widest distance between neighbours is a break, wherever the limit is."""
    text = f"{BIRDS} {METALS}"
    cuts = list(_semantic(text, 500))
    assert len(BIRDS) in {cut.end for cut in cuts}


def test_pic_groups_by_likeness_to_the_summary() -> None:
    """Neighbours on the same side of the mean likeness to the summary stand together."""
    text = f"{BIRDS} {METALS}"
    cuts = list(pic_cuts(text, 500, term_vectors, "Herons and egrets nest near lakes."))
    assert [(cut.start, cut.end) for cut in cuts] == [(0, len(BIRDS)), (len(BIRDS) + 1, len(text))]


def test_a_summary_is_the_most_central_sentences_in_order() -> None:
    """Without a given summary, what most sentences resemble stands for the document."""
    shown = ["Odd words alone.", *(f"Herons nest near lake {number}." for number in range(6))]
    summary = extractive_summary(shown, term_vectors)
    assert "Odd" not in summary
    assert summary.index("lake 0") < summary.index("lake 3")
    assert extractive_summary(shown[:2], term_vectors) == " ".join(shown[:2])


@pytest.mark.parametrize("cutter", [_semantic, _pic])
def test_nothing_gives_nothing(cutter: Cutter) -> None:
    """A text without words has no chunks; one sentence is one chunk."""
    assert list(cutter(" \n ", 16)) == []
    assert [(cut.start, cut.end) for cut in cutter("One sentence.", 16)] == [(0, 13)]


@pytest.mark.parametrize("cutter", [_semantic, _pic])
@given(st.text(alphabet="ab .\n。句字?", max_size=300), st.integers(4, 40))
@settings(max_examples=60)
def test_chunks_hold_everything_within_the_limit(cutter: Cutter, text: str, limit: int) -> None:
    """Chunks ascend without overlap, hold every character that is not white space, and keep the limit."""
    cuts = list(cutter(text, limit))
    held = np.zeros(len(text), int)
    for cut in cuts:
        held[cut.start : cut.end] += 1
        assert cut.tokens == count(text[cut.start : cut.end]) <= limit
    assert held.max(initial=0) <= 1
    assert all(held[at] for at, sign in enumerate(text) if not sign.isspace())
    assert [cut.start for cut in cuts] == sorted(cut.start for cut in cuts)
