from pathlib import Path

import numpy as np
import pytest
from kb import Entry, Silent, build, embedder, group, settings, update
from numpy.typing import NDArray

from mrag_cli.ground.errors import IndexUnsupported
from mrag_cli.parts.embedders import Embedder
from mrag_cli.parts.store.disk import Disk
from mrag_cli.parts.store.manifest import LexicalSettings, read_manifest
from mrag_cli.parts.store.segment_writer import GroupLines, SegmentSettings, SegmentWriter, length_pivot
from mrag_cli.parts.store.snapshot import Snapshot
from mrag_cli.parts.tokens import count
from mrag_cli.records.models import Document, DocumentGroup
from mrag_cli.stages.index import IndexSettings, build_index
from mrag_cli.stages.update import UpdateSettings, update_index


def test_numbers_are_counted(tmp_path: Path) -> None:
    """Tokens, costs and header costs are the encoding's own counts of the stripped texts."""
    entries = [Entry("k", "  One value. ", (), " Head. "), Entry("k", "Zwei", ("x", "y")), Entry("k", "三。")]
    build(tmp_path / "kb", [group("a", entries)])
    (segment,) = Snapshot.open(tmp_path / "kb").segments
    values = ["One value.", "Zwei", "三。"]
    assert segment.array("markers.tokens").tolist() == [count(value) for value in values]
    assert segment.array("markers.costs").tolist() == [count(f"{value}\n\n") for value in values]
    assert segment.array("markers.headers").tolist() == [count("Head.\n"), 0, 0]
    assert segment.first_keys.tolist() == [0, 1, 4, 5]
    assert segment.entry.origins == {"llm": 3}


def test_the_same_stream_gives_the_same_bytes(tmp_path: Path) -> None:
    """A build is reproducible to the last byte."""
    made = [group("a", [Entry("lamp", "one", ("kelp",), "H")]), group("b", [("海港", "two")])]
    assert build(tmp_path / "one", made, dense=True) == build(tmp_path / "two", made, dense=True)


def test_a_digest_tells_states_apart() -> None:
    """A document's digest changes with its record, units or markers, but not with the order of members."""
    one = group("a", [("lamp", "one")], {"x": 1, "y": 2})
    assert GroupLines.of(one).digest == GroupLines.of(group("a", [("lamp", "one")], {"y": 2, "x": 1})).digest
    others = [
        group("a", [("lamp", "two")], {"x": 1, "y": 2}),
        group("a", [("kelp", "one")], {"x": 1, "y": 2}),
        group("a", [("lamp", "one")], {"x": 1}),
        DocumentGroup(one.document, one.units),
        DocumentGroup(one.document, (), one.markers),
        DocumentGroup(Document("a", "s", "t", 1, 1), one.units, one.markers),
    ]
    digests = {GroupLines.of(other).digest for other in others}
    assert len(digests) == len(others)
    assert GroupLines.of(one).digest not in digests


@pytest.mark.parametrize(
    ("mean", "pivot"), [(0, 4), (3, 4), (4, 4), (20, 2**4.5), (24, 2**4.5), (33, 32), (1000, 1024)]
)
def test_the_pivot_is_on_a_coarse_grid(mean: int, pivot: float) -> None:
    """The length pivot is the mean key length on a grid of half octaves, at least 4."""
    assert length_pivot(np.array([mean, mean], np.uint32)) == pytest.approx(pivot)
    assert length_pivot(np.empty(0, np.uint32)) == pytest.approx(2**4.5)


def test_an_embedder_that_changes_its_mind(tmp_path: Path) -> None:
    """Vectors of another dimension than before are refused, and the index stays as it was."""

    def call(texts: object) -> NDArray[np.float32]:
        return np.ones((len(texts), 3), np.float32)  # type: ignore[arg-type]

    build(tmp_path / "kb", [group("a", [("lamp", "one")])], dense=True)
    with pytest.raises(IndexUnsupported, match="3 dimensions where 16"):
        update_index(
            [group("b", [("lamp", "two")])],
            tmp_path / "kb",
            UpdateSettings(lambda name: Embedder(name, call)),
            Silent(),
        )
    assert read_manifest(tmp_path / "kb").generation == 1


def test_an_index_without_keys_knows_its_dimension(tmp_path: Path) -> None:
    """An empty index with an embedder can be filled later."""
    made = build_index([], tmp_path / "kb", settings(dense=True), Silent())
    assert made.embedder is not None
    assert made.embedder.dimension == 16
    update(tmp_path / "kb", [group("a", [("lamp", "one")])])
    assert Snapshot.open(tmp_path / "kb").segments[0].vectors.shape == (1, 16)


def test_keys_are_embedded_in_blocks(tmp_path: Path) -> None:
    """Hundreds of keys are embedded at a time, never more, and in order."""
    sizes: list[int] = []

    def call(texts: object) -> NDArray[np.float32]:
        found = embedder().embed(list(texts))  # type: ignore[call-overload]
        sizes.append(len(found))
        return found

    many = [
        group(f"d{number}", [(f"lamp {number} {place}", "x") for place in range(30)]) for number in range(20)
    ]
    segment = SegmentSettings(LexicalSettings(), Embedder("blocks", call))
    build_index(many, tmp_path / "kb", IndexSettings(segment), Silent())
    assert sizes == [256, 256, 88]
    vectors = Snapshot.open(tmp_path / "kb").segments[0].vectors
    assert vectors[31] == pytest.approx(embedder().embed(["lamp 1 1"])[0], abs=1e-6)


def test_a_writer_can_give_up(tmp_path: Path) -> None:
    """A writer that gives up closes its files."""
    (tmp_path / "segments").mkdir()
    writer = SegmentWriter(Disk(), tmp_path / "segments/1", SegmentSettings(LexicalSettings(), embedder()))
    writer.add(group("a", [("lamp", "one")]))
    assert writer.documents == 1
    writer.abandon()
    writer.abandon()
