import shutil
from pathlib import Path

import pytest
from kb import build, group, update

from mrag_cli.ground.errors import IndexCorrupt, IndexMissing
from mrag_cli.parts.store.snapshot import Place, Snapshot
from mrag_cli.records.models import Deletion


def test_live_rows_are_counted_and_found(tmp_path: Path) -> None:
    """A snapshot counts and finds what is live, over all segments; a replaced document is found anew."""
    build(tmp_path / "kb", [group(name, [("lamp", name)]) for name in "abcdef"])
    update(tmp_path / "kb", [group("a", [("kelp", "new"), ("x", "y")]), Deletion("b")])
    snapshot = Snapshot.open(tmp_path / "kb")
    assert (snapshot.live_markers, snapshot.live_keys) == (6, 6)
    assert snapshot.find("a") == Place(1, 0)
    assert snapshot.find("b") is None
    assert snapshot.find("c") == Place(0, 2)
    assert snapshot.find("zzz") is None
    assert sorted(snapshot.known_documents()) == ["a", "c", "d", "e", "f"]
    assert len(list(snapshot.documents())) == 5


def test_a_reader_that_is_overtaken_looks_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a commit removes a segment between two reads, the newer generation is opened."""
    from mrag_cli.parts.store import snapshot

    build(tmp_path / "kb", [group("a", [("lamp", "old")])])
    read = snapshot.read_manifest
    first = read(tmp_path / "kb")
    update(tmp_path / "kb", [group("b", [("lamp", "new")])], compact=True)
    answers = iter([first])
    monkeypatch.setattr(snapshot, "read_manifest", lambda directory: next(answers, None) or read(directory))
    assert sorted(Snapshot.open(tmp_path / "kb").known_documents()) == ["a", "b"]


def test_a_missing_segment_is_damage(tmp_path: Path) -> None:
    """A segment that is gone without a newer generation is named, and so is what to do."""
    build(tmp_path / "kb", [group("a", [("lamp", "one")])])
    shutil.rmtree(tmp_path / "kb/segments/1")
    with pytest.raises(IndexCorrupt, match=r"segments/1: missing; restore"):
        Snapshot.open(tmp_path / "kb")
    shutil.rmtree(tmp_path / "kb")
    with pytest.raises(IndexMissing):
        Snapshot.open(tmp_path / "kb")


def test_a_copy_is_an_index(tmp_path: Path) -> None:
    """A copied directory is the same index; names in it are relative."""
    build(tmp_path / "kb", [group("a", [("lamp", "one")])])
    shutil.copytree(tmp_path / "kb", tmp_path / "moved")
    shutil.rmtree(tmp_path / "kb")
    assert Snapshot.open(tmp_path / "moved").known_documents().keys() == {"a"}
