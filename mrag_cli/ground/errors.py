"""Every error the command ends with, and its exit code.

The tree; the number is the process's exit code, kept on the class::

    MragError                 1   a bug or an operating-system error
    ├── UsageError            2   the command line does not make sense
    ├── DocumentsFailed       3   finished, but some documents failed or were rejected
    ├── InputError            4   malformed input, with its path and line
    ├── IndexMissing         10   there is no index there
    ├── IndexLocked          11   another writer holds the index
    ├── IndexUnsupported     12   a format or an embedder this version or query cannot use
    ├── IndexCorrupt         13   a file is not what was written; the message names it
    ├── ModelError           20   the model or the embedder failed; a rerun resumes
    └── LimitReached         21   a cost or call limit was reached; a rerun with more resumes

An interrupt ends with 130 and a reader that closed the pipe with 141; both have no class, because
nothing catches them but the command itself. A message says what is wrong, where, and what to do next.
"""

from __future__ import annotations

from typing import ClassVar


class MragError(Exception):
    """Base of all errors with a message meant for the user."""

    exit_code: ClassVar[int] = 1


class UsageError(MragError):
    """The options contradict each other or name something that does not exist."""

    exit_code = 2


class DocumentsFailed(MragError):
    """The command finished and wrote the rest, but some documents failed or were rejected."""

    exit_code = 3


class InputError(MragError):
    """Malformed input.

    Args:
        path: the file as the user named it, ``<stdin>`` for standard input.
        line: line number from 1, or None when the whole file is meant.
        message: what is wrong and what to do.
    """

    exit_code = 4

    def __init__(self, path: str, line: int | None, message: str) -> None:
        place = path if line is None else f"{path}:{line}"
        super().__init__(f"{place}: {message}")
        self.path = path
        self.line = line


class IndexMissing(MragError):
    """The directory holds no index."""

    exit_code = 10


class IndexLocked(MragError):
    """Another process is writing to the index."""

    exit_code = 11


class IndexUnsupported(MragError):
    """The index, or the stream, has a newer format, or another embedder than the one asked for."""

    exit_code = 12


class IndexCorrupt(MragError):
    """A file of the index is missing, has another size or digest, or contradicts the manifest."""

    exit_code = 13


class ModelError(MragError):
    """The language model or the embedder failed for good; what was paid for is kept, a rerun resumes."""

    exit_code = 20


class LimitReached(MragError):
    """The next call would have passed ``--max-cost`` or ``--max-calls``; a rerun with more resumes."""

    exit_code = 21
