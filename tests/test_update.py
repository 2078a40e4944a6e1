from pathlib import Path

import pytest
from kb import Silent, build, embedder, files_of, group, named_files, ranking, update

from mrag_cli.ground.errors import IndexMissing, InputError, ModelError
from mrag_cli.parts.embedders import Embedder
from mrag_cli.parts.store.manifest import read_manifest
from mrag_cli.parts.store.snapshot import Snapshot
from mrag_cli.records.models import Deletion, Document, DocumentGroup, Foreign, StreamPart
from mrag_cli.stages.update import UpdateResult, UpdateSettings, update_index


def _values(directory: Path) -> list[str]:
    return sorted(value for _, _, value, _ in ranking(directory, "lamp"))


@pytest.fixture
def index(tmp_path: Path) -> Path:
    """An index of three documents."""
    build(tmp_path / "kb", [group(name, [("lamp", name)]) for name in "abc"])
    return tmp_path / "kb"


def test_what_an_update_did(index: Path) -> None:
    """Documents are added, replaced, deleted and left alone, and counted; other records pass."""
    parts: list[StreamPart] = [
        group("a", [("lamp", "changed")]),
        group("b", [("lamp", "b")]),
        group("d", [("lamp", "d")]),
        Foreign(b"{}"),
        Deletion("c"),
    ]
    assert update(index, parts) == UpdateResult(1, 1, 1, 1, 3)  # the third generation is the merge's
    assert _values(index) == ["b", "changed", "d"]
    assert files_of(index) == named_files(index)


def test_nothing_to_change_writes_nothing(index: Path) -> None:
    """Unchanged documents, unknown deletions and an empty stream leave every file as it was."""
    stamps = {path: path.stat().st_mtime_ns for path in index.rglob("*")}
    told = Silent()
    made: list[str] = []
    settings = UpdateSettings(lambda name: made.append(name) or embedder())  # type: ignore[func-returns-value]
    same: list[StreamPart] = [group(name, [("lamp", name)]) for name in "cab"]
    assert update_index([*same, Deletion("zzz")], index, settings, told) == UpdateResult(0, 0, 0, 3, 1)
    assert told.notices == ["'zzz' is to be deleted, but is not in the index"]
    assert update(index, []).changed is False
    assert {path: path.stat().st_mtime_ns for path in index.rglob("*")} == stamps
    assert made == []


def test_the_later_part_of_a_stream_wins(index: Path) -> None:
    """In a stream a deletion removes what came before it, and a document brings back what was deleted."""
    update(index, [group("x", [("lamp", "x")]), Deletion("x")])
    assert _values(index) == ["a", "b", "c"]
    assert read_manifest(index).generation == 1
    update(index, [Deletion("a"), group("a", [("lamp", "a")])])
    assert read_manifest(index).generation == 1
    update(index, [group("x", [("lamp", "x")]), group("y", [("lamp", "y")]), Deletion("x")])
    assert _values(index) == ["a", "b", "c", "y"]
    update(index, [group("a", [("lamp", "new")]), Deletion("a")])
    assert _values(index) == ["b", "c", "y"]
    update(index, [group("b", [("lamp", "1")]), group("b", [("lamp", "2")])])
    assert _values(index) == ["2", "c", "y"]
    update(index, [group("b", [("lamp", "3")]), group("b", [("lamp", "2")])])
    assert _values(index) == ["2", "c", "y"]
    assert files_of(index) == named_files(index)


def test_a_failure_leaves_the_index_as_it_was(index: Path, tmp_path: Path) -> None:
    """A malformed stream or an embedder that fails changes nothing and leaves nothing."""

    def wrong() -> object:
        yield group("d", [("lamp", "d")])
        raise InputError("s", 1, "wrong")

    before = (index / "manifest.json").read_bytes()
    with pytest.raises(InputError):
        update(index, wrong())  # type: ignore[arg-type]
    assert (index / "manifest.json").read_bytes() == before
    assert files_of(index) == named_files(index)

    def failing(_texts: object) -> object:
        raise ModelError("the embedder is gone")

    build(tmp_path / "dense", [group("a", [("lamp", "a")])], dense=True)
    settings = UpdateSettings(lambda name: Embedder(name, failing))
    with pytest.raises(ModelError):
        update_index([group("b", [("lamp", "b")])], tmp_path / "dense", settings, Silent())
    assert files_of(tmp_path / "dense") == named_files(tmp_path / "dense")
    assert _values(tmp_path / "dense") == ["a"]
    with pytest.raises(IndexMissing):
        update(tmp_path / "none", [])


def test_a_change_of_meta_alone_is_a_change(index: Path) -> None:
    """A document whose record changes is replaced, though its markers stay."""
    assert update(index, [group("a", [("lamp", "a")], {"year": 1})]).replaced == 1
    snapshot = Snapshot.open(index)
    place = snapshot.find("a")
    assert place is not None
    assert snapshot.segments[place.segment].document(place.row).meta == {"year": 1}


def test_a_document_may_lose_its_markers(index: Path) -> None:
    """A document without markers stays known, so that it does not count as new each night."""
    update(index, [DocumentGroup(Document("a", "s", "a", 0, 0))])
    assert _values(index) == ["b", "c"]
    assert Snapshot.open(index).known_documents()["a"] == "s"


def test_a_large_stream_finds_its_documents_as_single_ones_do(tmp_path: Path) -> None:
    """Whether documents are searched for one by one or looked up in a table, the result is the same."""
    many = [group(f"d{number}", [("lamp", f"{number}")]) for number in range(200)]
    build(tmp_path / "kb", many[:150])
    result = update(
        tmp_path / "kb", [*many[:140], *many[150:], Deletion("d141"), group("d142", [("lamp", "x")])]
    )
    assert result == UpdateResult(50, 1, 1, 140, 2)
    assert len(Snapshot.open(tmp_path / "kb").known_documents()) == 199
