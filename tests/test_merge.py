from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kb import Entry, build, embedder, files_of, group, named_files, ranking, update

from mrag_cli.parts.store import graph
from mrag_cli.parts.store.layout import Rows
from mrag_cli.parts.store.manifest import DeadEntry, SegmentEntry, read_manifest
from mrag_cli.parts.store.merge import due, live_origins
from mrag_cli.parts.store.snapshot import Snapshot
from mrag_cli.records.models import Deletion


def _entry(name: int, markers: int, dead: int = 0) -> SegmentEntry:
    rows = Rows(*[markers] * len(Rows._fields))
    gone = DeadEntry(f"1/{name}.dead", 4 * dead, "0" * 64, dead, dead, dead, dead) if dead else None
    return SegmentEntry(str(name), rows, {"llm": markers}, {}, gone)


def test_a_full_tier_is_due() -> None:
    """Four segments of a size are merged; fewer, or of other sizes, are left alone."""
    assert due([_entry(1, 10), _entry(2, 10), _entry(3, 10)]) == []
    assert due([_entry(1, 10), _entry(2, 900_000), _entry(3, 10), _entry(4, 10), _entry(5, 3000)]) == [
        0,
        2,
        3,
        4,
    ]
    assert due([_entry(number, 5000) for number in range(1, 5)]) == [0, 1, 2, 3]


def test_a_segment_with_many_dead_rows_is_due() -> None:
    """A segment a third of whose keys are dead is rewritten alone."""
    assert due([_entry(1, 90, 30)]) == []
    assert due([_entry(1, 90, 31)]) == [0]


@given(st.lists(st.integers(1, 20_000), min_size=1, max_size=60))
def test_segments_stay_few_and_markers_are_rewritten_seldom(appends: list[int]) -> None:
    """However appends come, segments are at most three a tier, and no marker is lost."""
    entries: list[SegmentEntry] = []
    for number, size in enumerate(appends, 1):
        entries.append(_entry(number, size))
        while numbers := due(entries):
            merged = sum(entries[which].rows.markers for which in numbers)
            entries = [entry for which, entry in enumerate(entries) if which not in numbers]
            entries.append(_entry(number, merged))
    tiers = 1 + max(0, sum(appends) // 1000).bit_length() // 2
    assert len(entries) <= 3 * (tiers + 1)
    assert sum(entry.rows.markers for entry in entries) == sum(appends)


def test_a_thousand_nightly_appends() -> None:
    """After a thousand appends of a hundred markers, segments are few and little was rewritten."""
    entries = [_entry(1, 1_000_000)]
    rewritten = 0
    for number in range(1000):
        entries.append(_entry(number + 2, 100))
        while numbers := due(entries):
            assert 0 not in numbers
            merged = sum(entries[which].rows.markers for which in numbers)
            rewritten += merged
            entries = [entry for which, entry in enumerate(entries) if which not in numbers]
            entries.append(_entry(number + 2, merged))
    assert len(entries) <= 1 + 3 * 4
    assert rewritten < 15 * 100 * 1000


def test_compaction_gives_space_back(tmp_path: Path) -> None:
    """After a compaction there is one segment without dead rows, which answers and counts as before."""
    index = tmp_path / "kb"
    many = [group(f"d{number}", [Entry(f"lamp {number}", f"{number}", ("kelp",))]) for number in range(12)]
    build(index, many[:8], dense=True)
    update(index, [*many[8:], Deletion("d3")])
    before: Any = [ranking(index, "lamp 7 kelp", retriever=way) for way in ("bm25", "dense", "hybrid")]
    update(index, [], compact=True)
    assert [ranking(index, "lamp 7 kelp", retriever=way) for way in ("bm25", "dense", "hybrid")] == before
    (segment,) = Snapshot.open(index).segments
    assert segment.entry.dead is None
    assert segment.entry.rows.documents == 11
    assert live_origins(segment) == {"llm": 11}
    assert files_of(index) == named_files(index)
    generation = read_manifest(index).generation
    update(index, [], compact=True)
    assert read_manifest(index).generation == generation


def test_merging_builds_a_graph_where_one_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments too small for a graph get one when they are large enough together."""
    monkeypatch.setattr(graph, "SMALLEST_GRAPH", 6)
    index = tmp_path / "kb"
    build(index, [group(f"a{number}", [(f"lamp {number}", "x")]) for number in range(4)], dense=True)
    update(index, [group(f"b{number}", [(f"kelp {number}", "x")]) for number in range(4)], compact=True)
    assert "segments/3/graph" in files_of(index)
    found = graph.Graphs(Snapshot.open(index), 10, 1).nearest(embedder().embed(["kelp 2"]), 1)
    assert found[0] is not None
    assert found[0].tolist() == [[6]]


def test_an_index_whose_documents_are_all_gone(tmp_path: Path) -> None:
    """When every document is deleted no segment is left; the index takes new ones."""
    index = tmp_path / "kb"
    build(index, [group("a", [("lamp", "one")])], dense=True)
    update(index, [Deletion("a")])
    assert read_manifest(index).segments == ()
    assert files_of(index) == {"manifest.json"}
    assert ranking(index, "lamp") == []
    update(index, [group("b", [("lamp", "two")])])
    assert len(ranking(index, "lamp")) == 1
