from pathlib import Path

from kb import Entry, build, files_of, group, update

from mrag_cli.parts.store.snapshot import Snapshot
from mrag_cli.records.models import Deletion
from mrag_cli.stages.info import describe


def test_numbers_are_those_of_live_rows(tmp_path: Path) -> None:
    """Documents, units, markers and keys are counted without the dead ones, which are told apart."""
    index = tmp_path / "kb"
    build(index, [group(name, [Entry("lamp", name, ("light",)), ("x", "y")]) for name in "abcd"], dense=True)
    update(index, [Deletion("a"), group("e", [("kelp", "e")])])
    found = describe(Snapshot.open(index))
    assert (found["documents"], found["units"], found["markers"], found["keys"]) == (4, 7, 7, 10)
    assert found["dead"] == {"documents": 1, "units": 2, "markers": 2, "keys": 3}
    assert found["origins"] == {"llm": 7}
    assert [segment["name"] for segment in found["segments"]] == ["1", "2"]
    assert [segment["dead_markers"] for segment in found["segments"]] == [2, 0]
    manifest = (index / "manifest.json").stat().st_size
    assert found["bytes"] == sum((index / name).stat().st_size for name in files_of(index)) - manifest
    assert found["embedder"] == {
        "name": "hash",
        "dimension": 16,
        "dtype": "float32",
        "metric": "cosine",
        "normalised": True,
    }
    assert found["generation"] == 2
    assert found["lexical"] == {"k1": 0.9, "b": 0.4, "pivot": 4.0}


def test_an_empty_index(tmp_path: Path) -> None:
    """An index of nothing is described as such."""
    build(tmp_path / "kb", [])
    found = describe(Snapshot.open(tmp_path / "kb"))
    assert (found["documents"], found["bytes"], found["segments"], found["embedder"]) == (0, 0, [], None)
