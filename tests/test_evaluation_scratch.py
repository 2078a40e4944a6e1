"""Indexes that nobody waits for."""

from pathlib import Path

from mrag_cli.parts.evaluation.scratch import UnsyncedDisk


def test_bytes_are_there_without_waiting(tmp_path: Path) -> None:
    """What was written can be read at once, and a folder needs no syncing."""
    disk = UnsyncedDisk()
    with (tmp_path / "file").open("wb") as file:
        file.write(b"words")
        disk.sync(file)
        assert (tmp_path / "file").read_bytes() == b"words"
    disk.sync_folder(tmp_path / "gone")
