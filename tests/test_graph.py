from pathlib import Path

import numpy as np
import pytest
from kb import build, embedder, group, ranking, update

from mrag_cli.ground.errors import IndexCorrupt
from mrag_cli.parts.store import graph
from mrag_cli.parts.store.disk import Disk
from mrag_cli.parts.store.graph import Graphs, write_graph
from mrag_cli.parts.store.snapshot import Snapshot
from mrag_cli.records.models import Deletion
from mrag_cli.stages.verify import recall


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An index of 120 keys with a graph, a third of whose documents are dead."""
    monkeypatch.setattr(graph, "SMALLEST_GRAPH", 100)
    many = [
        group(
            f"d{number:02}",
            [(f"lamp {number} {place} {number * place}", f"{number} {place}") for place in range(4)],
        )
        for number in range(30)
    ]
    build(tmp_path / "kb", many, dense=True)
    update(tmp_path / "kb", [Deletion(f"d{number:02}") for number in range(0, 30, 3)])
    assert (tmp_path / "kb/segments/1/graph").is_file()
    return tmp_path / "kb"


def test_the_graph_finds_what_exact_search_finds(index: Path) -> None:
    """With a wide search the answers are those of exact search, scores and order included."""
    for question in ("lamp 4 2 8", "lamp 29", "lamp"):
        for retriever in ("dense", "hybrid"):
            wanted = ranking(index, question, retriever=retriever)[:20]
            assert ranking(index, question, retriever=retriever, ef=500)[:20] == wanted
    assert recall(index, 500, 20) == 1.0


def test_many_questions_at_a_time(index: Path) -> None:
    """Each question of a block gets its own answer."""
    graphs = Graphs(Snapshot.open(index), 200, 2)
    vectors = embedder().embed(["lamp 4 2 8", "lamp 7 1 7"])
    (both,) = graphs.nearest(vectors, 5)
    assert both is not None
    for number in range(2):
        (alone,) = graphs.nearest(vectors[number : number + 1], 5)
        assert alone is not None
        assert both[number].tolist() == alone[0].tolist()
        assert both.shape[1] >= 5


def test_more_than_there_is(index: Path) -> None:
    """More neighbours than live keys are not asked for; exact search answers where the graph falls short."""
    assert len(ranking(index, "lamp", retriever="dense", ef=1)) == 80


def test_a_damaged_graph_is_refused_before_it_is_loaded(index: Path) -> None:
    """A flipped bit, which hnswlib would take or crash on, is seen by the digest."""
    path = index / "segments/1/graph"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(IndexCorrupt, match="graph: not the bytes"):
        ranking(index, "lamp", retriever="dense", ef=10)
    assert len(ranking(index, "lamp", retriever="dense")) == 80


def test_a_small_matrix_gets_no_graph(tmp_path: Path) -> None:
    """Below the size at which it pays there is none."""
    assert write_graph(Disk(), tmp_path / "graph", np.ones((5, 2), np.float32), 1) is None
    assert not (tmp_path / "graph").exists()


def test_one_thread_gives_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A graph built by one thread is reproducible; float16 vectors make one, too."""
    monkeypatch.setattr(graph, "SMALLEST_GRAPH", 100)
    vectors = np.random.default_rng(1).standard_normal((500, 8)).astype(np.float32)
    made = [write_graph(Disk(), tmp_path / name, vectors, 1) for name in ("one", "two")]
    assert made[0] is not None
    assert made[0] == made[1]
    assert write_graph(Disk(), tmp_path / "half", vectors.astype(np.float16), 2) is not None


def test_no_graph_no_recall(tmp_path: Path) -> None:
    """An index without a graph has no recall to speak of."""
    build(tmp_path / "kb", [group("a", [("lamp", "one")])], dense=True)
    assert recall(tmp_path / "kb", 10) is None
