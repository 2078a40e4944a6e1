from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kb import Entry, build, group, update, vector_of

from mrag_cli.ground.errors import IndexCorrupt
from mrag_cli.parts.store.segment import Segment
from mrag_cli.parts.store.snapshot import Snapshot
from mrag_cli.parts.tokens import count
from mrag_cli.records.models import Deletion

IDS = ["b", "a", "é", "\uffff", "\U0001f6a2", "z/1", "z/10", "z/2"]
GROUPS = [group(doc, [Entry(f"key {doc}", f"value {doc}", ("alias",)), ("second", "two")]) for doc in IDS]


@pytest.fixture(scope="module")
def segment(tmp_path_factory: pytest.TempPathFactory) -> Segment:
    """A segment of eight documents, the third of which is dead."""
    directory = tmp_path_factory.mktemp("segment") / "kb"
    build(directory, GROUPS, dense=True)
    update(directory, [Deletion("é")])
    (found,) = Snapshot.open(directory).segments
    return found


def test_records_are_those_of_the_stream(segment: Segment) -> None:
    """Documents, units and markers read as they came, but for the tokens, which are counted."""
    for row, found in enumerate(GROUPS):
        assert segment.document(row) == found.document
        assert segment.document_id(row) == found.document.doc
        first = int(segment.first_markers[row])
        counted = tuple(replace(marker, tokens=count(marker.value)) for marker in found.markers)
        assert tuple(segment.marker(first + number) for number in range(2)) == counted
        first = int(segment.first_units[row])
        assert tuple(segment.unit(first + number) for number in range(2)) == found.units
        assert [segment.document_of(int(segment.first_markers[row]) + number) for number in range(2)] == [
            row,
            row,
        ]


@given(st.sampled_from(IDS) | st.text(st.characters(exclude_categories=["Cs"])))
def test_a_document_is_found_by_its_id(segment: Segment, doc: str) -> None:
    """An id gives its row, whatever characters it has; an unknown one gives None."""
    assert segment.find(doc) == (IDS.index(doc) if doc in IDS else None)


def test_ids_are_in_the_order_of_their_bytes(segment: Segment) -> None:
    """The stored order is by code points, which is that of the UTF-8 bytes."""
    ordered = [segment.document_id(row) for row in segment.array("documents.order").tolist()]
    assert ordered == sorted(IDS, key=str.encode)
    assert segment.array("documents.ranks")[segment.array("documents.order")].tolist() == [*range(8)]


def test_dead_rows(segment: Segment) -> None:
    """A dead document's markers and keys are not live, and its row is still there."""
    assert segment.dead_documents.tolist() == [2]
    assert [segment.is_dead(row) for row in range(8)] == [row == 2 for row in range(8)]
    assert segment.live_document_rows().tolist() == [0, 1, 3, 4, 5, 6, 7]
    assert segment.live_markers is not None
    assert np.flatnonzero(~segment.live_markers).tolist() == [4, 5]
    assert segment.live_keys is not None
    assert np.flatnonzero(~segment.live_keys).tolist() == [6, 7, 8]


def test_vectors_are_of_unit_length(segment: Segment) -> None:
    """Each key has a vector, normalised; inner products are with all of them."""
    assert segment.vectors.shape == (24, 16)
    assert np.linalg.norm(segment.vectors, axis=1) == pytest.approx(1, abs=1e-6)
    wanted = np.array(vector_of("key b"), np.float32)
    assert segment.products(wanted / np.linalg.norm(wanted))[0] == pytest.approx(1)


@pytest.mark.parametrize("row", [-1, 8, 1 << 40])
def test_rows_that_are_not_there(segment: Segment, row: int) -> None:
    """A row beyond the ends is damage somewhere, and says in which file."""
    with pytest.raises(IndexCorrupt, match=r"documents\.jsonl: row .* is not there"):
        segment.document(row)


def test_a_segment_of_documents_without_markers(tmp_path: Path) -> None:
    """Documents without markers are kept, and find nothing."""
    build(tmp_path / "kb", [group("a"), group("b")], dense=True)
    (segment,) = Snapshot.open(tmp_path / "kb").segments
    assert segment.document(1).doc == "b"
    assert segment.vectors.shape == (0, 16)
    assert len(segment.products(np.zeros(16, np.float32))) == 0
    assert segment.entry.rows.keys == 0
