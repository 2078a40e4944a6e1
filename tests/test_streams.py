"""Streams as files and pipes."""

import io
import os
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from heard import Heard
from kb import group, stream_file

from mrag_cli.cli.streams import opened, sink, stream, write_stream
from mrag_cli.ground.errors import InputError, UsageError
from mrag_cli.records.models import Deletion, StreamPart


class _Stdin:
    """Standard input with a buffer, as Python has it."""

    def __init__(self, content: bytes) -> None:
        self.buffer = io.BytesIO(content)


class _Broken(Exception):
    """What goes wrong in the middle of something."""


class _Counting(io.BytesIO):
    """A file that counts how often it was flushed."""

    flushed = 0

    def flush(self) -> None:
        self.flushed += 1
        super().flush()


@pytest.mark.parametrize("path", [None, Path("-")])
def test_standard_input_has_a_name(path: Path | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """No file, or ``-``, is standard input, which stays open."""
    monkeypatch.setattr(sys, "stdin", _Stdin(b"lines"))
    with opened(path) as (file, name):
        assert (file.read(), name) == (b"lines", "<stdin>")
    assert not file.closed


def test_a_file_is_closed_afterwards(tmp_path: Path) -> None:
    """A file goes by the name the user gave, and is closed whatever happens."""
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"lines")
    with suppress(_Broken), opened(path) as (file, name):
        assert (file.read(), name) == (b"lines", str(path))
        raise _Broken
    assert file.closed


def test_what_cannot_be_opened_is_a_usage_error(tmp_path: Path) -> None:
    """A missing file and a folder are named, with what is expected."""
    with pytest.raises(UsageError, match="No such file") as missing, opened(tmp_path / "none"):
        pass
    assert str(tmp_path / "none") in str(missing.value)
    with pytest.raises(UsageError, match="is a folder; a JSONL stream"), opened(tmp_path):
        pass


def test_a_stream_comes_back_as_it_was_written(tmp_path: Path) -> None:
    """Documents and deletions are read in order; a written stream is flushed document by document."""
    parts: list[StreamPart] = [group("a", [("key", "value")]), Deletion("b"), group("c")]
    with stream(stream_file(tmp_path / "s", parts), Heard()) as found:
        assert [part.doc if isinstance(part, Deletion) else part.document.doc for part in found] == [  # type: ignore[union-attr]
            "a",
            "b",
            "c",
        ]
    written = _Counting()
    write_stream(parts, written)
    assert written.getvalue() == (tmp_path / "s").read_bytes()
    assert written.flushed == 3


def test_a_malformed_stream_names_its_line(tmp_path: Path) -> None:
    """The path is the one the user gave."""
    path = stream_file(tmp_path / "s", [group("a", [("key", "value")])])
    path.write_bytes(path.read_bytes() + b"{\n")
    with pytest.raises(InputError, match=rf"{path}:4: "), stream(path, Heard()) as parts:
        list(parts)


def test_pointers_are_checked_unless_told_otherwise(tmp_path: Path) -> None:
    """`validate` repairs pointers, so it reads what others refuse."""
    path = stream_file(tmp_path / "s", [group("a", [("key", "value")])])
    path.write_bytes(path.read_bytes().replace(b'"pointers":[1]', b'"pointers":[7]'))
    with pytest.raises(InputError, match="pointer 7"), stream(path, Heard()) as parts:
        list(parts)
    with stream(path, Heard(), check_pointers=False) as parts:
        assert len(list(parts)) == 1


def test_a_result_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    """The file is there on success; after an error the one before it is, and nothing else."""
    out = tmp_path / "out"
    with sink(out) as file:
        file.write(b"first")
        assert not out.exists()
    assert out.read_bytes() == b"first"
    with suppress(_Broken), sink(out) as file:
        file.write(b"second")
        raise _Broken
    assert out.read_bytes() == b"first"
    assert list(tmp_path.iterdir()) == [out]


@pytest.mark.parametrize("output", ["", "none/out"])
def test_a_result_needs_a_folder_to_be_in(output: str, tmp_path: Path) -> None:
    """A folder, or a file in a folder that is not there, is a usage error before anything is done."""
    with pytest.raises(UsageError, match=r"-o .*a file in an existing folder"), sink(tmp_path / output):
        pytest.fail("the block ran")


def test_a_result_in_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bare name is a file here."""
    monkeypatch.chdir(tmp_path)
    with sink(Path("out")) as file:
        file.write(b"x")
    assert (tmp_path / "out").read_bytes() == b"x"


@pytest.mark.parametrize("output", [None, Path("-")])
def test_standard_output_is_flushed_and_stays_open(
    output: Path | None, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """Without a file the result goes to standard output."""
    with sink(output) as file:
        file.write(b"x")
    assert capfdbinary.readouterr().out == b"x"
    assert not file.closed
    assert os.fstat(1)
