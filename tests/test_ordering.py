from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kb import asking, build, group, update

from mrag_cli.parts.ordering import best, ordered
from mrag_cli.parts.store.manifest import read_manifest
from mrag_cli.parts.store.snapshot import Place, Snapshot

EACH = 3


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    """Two segments whose documents interleave by id; one document is without a marker."""
    directory = tmp_path_factory.mktemp("ordering") / "kb"

    def some(names: str) -> list[object]:
        return [group(name, [(f"{name} {row}", f"{name} {row}") for row in range(EACH)]) for name in names]

    build(directory, [*some("fbd"), group("0")])
    update(directory, some("ceag"))
    assert len(read_manifest(directory).segments) == 2
    return Snapshot.open(directory)


def plain(snapshot: Snapshot, scores: list[tuple[Place, float]], count: int) -> list[tuple[Place, float]]:
    """Return the order by a sort over every document's id."""

    def order(entry: tuple[Place, float]) -> tuple[float, str, int]:
        (number, row), score = entry
        segment = snapshot.segments[number]
        return -score, segment.document_id(segment.document_of(row)), row

    return sorted(scores, key=order)[:count]


SCORES = st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0]), min_size=7 * EACH, max_size=7 * EACH)


@given(SCORES, st.integers(1, 30))
def test_equal_scores_stand_by_document_and_position(
    snapshot: Snapshot, scores: list[float], count: int
) -> None:
    """The order is that of a plain sort by score, document id and position, however scores tie."""
    sizes = [segment.entry.rows.markers for segment in snapshot.segments]
    by_segment = [np.array(scores[: sizes[0]], np.float32), np.array(scores[sizes[0] :], np.float32)]
    every = [
        (Place(number, row), float(own[row]))
        for number, own in enumerate(by_segment)
        for row in range(len(own))
    ]
    places, all_scores = [place for place, _ in every], [score for _, score in every]
    assert ordered(snapshot, places[::-1], all_scores[::-1], count) == plain(snapshot, every, count)
    above = [entry for entry in every if entry[1] > 0]
    assert best(snapshot, by_segment, count) == plain(snapshot, above, count)


def test_nothing_is_in_order(snapshot: Snapshot) -> None:
    """No marker, and no marker above 0, make an empty order."""
    assert ordered(snapshot, [], [], 5) == []
    nothing = [np.zeros(segment.entry.rows.markers, np.float32) for segment in snapshot.segments]
    assert best(snapshot, nothing, 5) == []


def test_thousands_of_ties(tmp_path: Path) -> None:
    """Where very many markers score the same, the first by document and position are found, and quickly."""
    many = [
        group(f"{number:03}", [("lamp", f"{number} {place}") for place in range(10)])
        for number in range(99, -1, -1)
    ]
    build(tmp_path / "kb", many, dense=True)
    update(tmp_path / "kb", [group("050+", [("lamp", "late")])])
    for retriever in ("bm25", "dense", "hybrid"):
        query = asking(Snapshot.open(tmp_path / "kb"), retriever=retriever, considered=12, steps=None)
        found = [hit.marker.value for hit in query.answer("lamp").hits]
        assert found == [*(f"0 {place}" for place in range(10)), "1 0", "1 1"]
