"""Streams as files and pipes: where a command reads from and writes to."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mrag_cli.ground.errors import UsageError
from mrag_cli.ground.files import replaced_on_success
from mrag_cli.records.stream import read_stream, write_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path
    from typing import IO

    from mrag_cli.ground.report import Reporter
    from mrag_cli.records.models import StreamPart


@contextmanager
def opened(path: Path | None) -> Iterator[tuple[IO[bytes], str]]:
    """Open a stream for reading.

    Args:
        path: the file; ``-`` or None for standard input.

    Yields:
        The open binary file and its name for messages, ``<stdin>`` for standard input.

    Raises:
        UsageError: there is no such file, it is a folder, or it cannot be read.
    """
    if path is None or str(path) == "-":
        yield sys.stdin.buffer, "<stdin>"
        return
    try:
        file = path.open("rb")
    except IsADirectoryError:
        raise UsageError(f"{path} is a folder; a JSONL stream is expected, as `mrag tag` writes it") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    with file:
        yield file, str(path)


@contextmanager
def stream(
    path: Path | None, reporter: Reporter, *, check_pointers: bool = True
) -> Iterator[Iterator[StreamPart]]:
    """Open and read a marker stream; see `opened` and `mrag_cli.records.stream.read_stream`."""
    with opened(path) as (file, name):
        yield read_stream(file, name, reporter, check_pointers=check_pointers)


@contextmanager
def sink(output: Path | None) -> Iterator[IO[bytes]]:
    """Open the result for writing: a file that appears whole on success, or standard output."""
    if output is None or str(output) == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    if output.is_dir() or not output.resolve().parent.is_dir():
        raise UsageError(f"-o {output}: a file in an existing folder is expected")
    with replaced_on_success(output) as file:
        yield file


def write_stream(parts: Iterable[StreamPart], file: IO[bytes]) -> None:
    """Write a marker stream; each document is flushed, so that the next stage can start on it."""
    for part in parts:
        file.write(b"".join(write_lines(part)))
        file.flush()
