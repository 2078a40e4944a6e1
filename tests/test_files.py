import hashlib
import os
import stat
import threading
from pathlib import Path

import pytest

from mrag_cli.ground.files import digest_of, replaced_on_success


def test_a_file_appears_whole(tmp_path: Path) -> None:
    """While it is written nothing is there; then all of it is, and nothing else."""
    path = tmp_path / "out"
    with replaced_on_success(path) as file:
        file.write(b"one")
        assert not path.exists()
    assert path.read_bytes() == b"one"
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]


def test_an_error_leaves_what_was_there(tmp_path: Path) -> None:
    """After an error the old file stays, and nothing of the new one."""
    path = tmp_path / "out"
    path.write_bytes(b"old")

    def write() -> None:
        with replaced_on_success(path) as file:
            file.write(b"new")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write()
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]


def test_modes_are_kept(tmp_path: Path) -> None:
    """A replaced file keeps its mode; a new one has the usual one."""
    path = tmp_path / "out"
    path.write_bytes(b"old")
    path.chmod(0o604)
    (tmp_path / "usual").write_bytes(b"")
    for name in ("out", "new"):
        with replaced_on_success(tmp_path / name) as file:
            file.write(b"x")
    assert stat.S_IMODE(path.stat().st_mode) == 0o604
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    """Writing to a link replaces what it leads to."""
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to("real")
    with replaced_on_success(tmp_path / "link") as file:
        file.write(b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    """What is no regular file is written to as it is."""
    os.mkfifo(tmp_path / "pipe")
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    with replaced_on_success(tmp_path / "pipe") as file:
        file.write(b"through")
    reader.join()
    assert read == [b"through"]


def test_a_long_name(tmp_path: Path) -> None:
    """The longest name that a folder takes can be written."""
    path = tmp_path / ("n" * 255)
    with replaced_on_success(path) as file:
        file.write(b"x")
    assert path.read_bytes() == b"x"


def test_a_missing_folder(tmp_path: Path) -> None:
    """A folder that is not there is an operating-system error."""
    with pytest.raises(FileNotFoundError), replaced_on_success(tmp_path / "no" / "out"):
        pass


def test_digests(tmp_path: Path) -> None:
    """A file's digest is the SHA-256 of its bytes."""
    (tmp_path / "f").write_bytes(b"x" * 300_000)
    assert digest_of(tmp_path / "f") == hashlib.sha256(b"x" * 300_000).hexdigest()
