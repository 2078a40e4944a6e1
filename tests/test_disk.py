import hashlib
from pathlib import Path

import pytest
from faults import FaultDisk
from hypothesis import given
from hypothesis import strategies as st

from mrag_cli.parts.store.disk import Disk, WrittenFile


@given(
    pieces=st.lists(
        st.binary(max_size=10) | st.sampled_from([b"x" * (1 << 20), b"y" * 3_000_001]), max_size=5
    )
)
def test_a_file_holds_what_was_written(tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes]) -> None:
    """Pieces of any size arrive in order; size and digest are those of the whole."""
    path = tmp_path_factory.mktemp("disk") / "file"
    file = WrittenFile(Disk(), path)
    for piece in pieces:
        file.write(memoryview(piece))
    digest = file.finish()
    whole = b"".join(pieces)
    assert path.read_bytes() == whole
    assert (file.size, digest) == (len(whole), hashlib.sha256(whole).hexdigest())
    path.unlink()


def test_an_abandoned_file_is_closed_without_a_sync(tmp_path: Path) -> None:
    """Giving up writes and syncs nothing more."""
    disk = FaultDisk()
    file = WrittenFile(disk, tmp_path / "file")
    file.write(b"waiting")
    file.abandon()
    assert disk.operations == []


def test_a_file_that_is_there_is_not_overwritten(tmp_path: Path) -> None:
    """Files of an index are written once."""
    (tmp_path / "file").write_text("x")
    with pytest.raises(FileExistsError):
        WrittenFile(Disk(), tmp_path / "file")


def test_folders(tmp_path: Path) -> None:
    """A folder is made with its parents, one that is there stays, an empty one can be removed."""
    disk = Disk()
    disk.make_folder(tmp_path / "a/b/c")
    disk.make_folder(tmp_path / "a/b/c")
    assert (tmp_path / "a/b/c").is_dir()
    disk.remove_folder(tmp_path / "a/b/c")
    (tmp_path / "one").write_text("new")
    disk.replace(tmp_path / "one", tmp_path / "two")
    disk.remove(tmp_path / "two")
    disk.remove(tmp_path / "two")
    disk.write_by(tmp_path / "lib", lambda name: Path(name).write_text("by a library") and None)
    assert (tmp_path / "lib").read_text() == "by a library"
