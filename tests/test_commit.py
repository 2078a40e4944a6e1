import threading
import time
from pathlib import Path

import pytest
from faults import FaultDisk
from kb import build, files_of, group, named_files, update

from mrag_cli.ground.errors import IndexLocked, IndexMissing, UsageError
from mrag_cli.parts.store.commit import transaction
from mrag_cli.parts.store.manifest import read_manifest
from mrag_cli.records.models import Deletion


def test_there_must_be_an_index(tmp_path: Path) -> None:
    """Without an index there is nothing to change, and nothing is made."""
    with pytest.raises(IndexMissing), transaction(tmp_path / "none"):
        pass
    assert not (tmp_path / "none").exists()


def test_a_folder_with_other_things_is_refused(tmp_path: Path) -> None:
    """An index is made in a folder of its own: a new one, an empty one, or what a failed build left."""
    (tmp_path / "notes.txt").write_text("x")
    for place in (tmp_path, tmp_path / "notes.txt"):
        with pytest.raises(UsageError, match="folder of its own"), transaction(place, create=True):
            pass
    (tmp_path / "empty").mkdir()
    with transaction(tmp_path / "empty", create=True) as changing:
        assert changing.manifest is None
        assert changing.generation == 1
    with transaction(tmp_path / "empty", create=True):
        pass
    assert files_of(tmp_path / "empty") == set()


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    """A second writer is refused at once, or gets its turn while it waits."""
    build(tmp_path / "kb", [group("a", [("lamp", "one")])])
    got = []

    def wait() -> None:
        with transaction(tmp_path / "kb", wait=10):
            got.append(True)

    with transaction(tmp_path / "kb"):
        with pytest.raises(IndexLocked, match="--wait SECONDS"), transaction(tmp_path / "kb"):
            pass
        waiting = threading.Thread(target=wait)
        waiting.start()
        time.sleep(0.1)
        assert not got
    waiting.join(10)
    assert got


def test_dead_rows_of_a_later_generation_replace_the_earlier_ones(tmp_path: Path) -> None:
    """Each deletion writes all dead rows of a segment anew; the earlier list is garbage."""
    build(tmp_path / "kb", [group(f"d{number}", [("lamp", "one")]) for number in range(9)])
    for number in range(3):
        update(tmp_path / "kb", [Deletion(f"d{number}")])
        dead = read_manifest(tmp_path / "kb").segments[0].dead
        assert dead is not None
        assert dead.name == f"{number + 2}/1.dead"
        assert (dead.documents, dead.markers, dead.keys, dead.units) == (number + 1,) * 4
        assert files_of(tmp_path / "kb") == named_files(tmp_path / "kb")


def test_garbage_goes_only_once_the_manifest_is_settled(tmp_path: Path) -> None:
    """The first removal comes after a sync of the directory, in which the rename was made."""
    build(tmp_path / "kb", [group("a", [("lamp", "one")]), group("b", [("lamp", "two")])])
    (tmp_path / "kb/segments/7").mkdir()
    (tmp_path / "kb/segments/7/arrays").write_text("left by a crash")
    disk = FaultDisk()
    update(tmp_path / "kb", [], disk=disk)
    assert disk.operations == ["sync_folder", "remove", "remove_folder"]
    disk = FaultDisk()
    update(tmp_path / "kb", [Deletion("a")], disk=disk)
    replaced = disk.operations.index("replace")
    assert disk.operations[replaced + 1] == "sync_folder"
    assert not any(name.startswith("remove") for name in disk.operations[:replaced])


def test_all_files_are_synced_before_the_manifest_is_written(tmp_path: Path) -> None:
    """Between the last write of a segment and the manifest's there is a sync of every file and the folder."""
    disk = FaultDisk()
    build(tmp_path / "kb", [group("a", [("lamp", "one")])], dense=True, disk=disk)
    names = disk.operations
    manifest = len(names) - 1 - names[::-1].index("write")
    assert names[manifest - 1] == "sync_folder"
    assert names[:manifest].count("sync") == names[:manifest].count("write")
    assert names[manifest:] == ["write", "sync", "replace", "sync_folder"]
