"""What the command says on stderr: notices, failures, progress on a terminal."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from mrag_cli.ground.errors import DocumentsFailed
from mrag_cli.ground.report import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from rich.progress import Progress, TaskID

T = TypeVar("T")


class Console:
    """Reporter of one run of the command.

    Progress is drawn only when stderr is a terminal, notices always; ``quiet`` silences both, but never
    failures and errors.

    Args:
        quiet: say nothing but failures and errors.
    """

    def __init__(self, *, quiet: bool = False) -> None:
        self.quiet = quiet
        self.failures: list[tuple[str, str]] = []
        self._progress: Progress | None = None

    def notice(self, message: str) -> None:
        """Say something worth knowing that changes nothing about the result's validity."""
        if not self.quiet:
            self._say(message)

    def failed(self, name: str, reason: str) -> None:
        """Record and say that the document or file ``name`` failed."""
        self.failures.append((name, reason))
        self._say(f"failed: {name}: {reason}")

    def finish(self) -> None:
        """End the run.

        Raises:
            DocumentsFailed: something failed on the way; what did not is written.
        """
        if self.failures:
            number = len(self.failures)
            documents = "1 document" if number == 1 else f"{number} documents"
            raise DocumentsFailed(f"{documents} failed, listed above; the rest is written")

    def _say(self, message: str) -> None:
        if self._progress is None:
            say(message)
        else:
            self._progress.console.print(
                visible(f"mrag: {message}"), markup=False, highlight=False, emoji=False, soft_wrap=True
            )

    @contextmanager
    def progress(self, verb: str, total: int | None = None) -> Iterator[Callable[..., None]]:
        """Draw a progress line while the block runs, if stderr is a terminal.

        Yields:
            A function to call with the number of further documents done, and optionally ``total``.
        """
        if self.quiet or not sys.stderr.isatty():
            yield lambda *_args, **_kwargs: None
            return
        from rich.console import Console as RichConsole
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        clock = TimeElapsedColumn() if total is None else TimeRemainingColumn()
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), clock)
        with Progress(*columns, console=RichConsole(stderr=True), transient=True) as progress:
            task: TaskID = progress.add_task(verb, total=total)

            def advance(amount: int = 1, total: int | None = None) -> None:
                progress.update(task, advance=amount, total=total)

            self._progress = progress
            try:
                yield advance
            finally:
                self._progress = None

    def counted(self, things: Iterable[T], verb: str, total: int | None = None) -> Iterator[T]:
        """Yield ``things`` on, drawing how many have passed."""
        with self.progress(verb, total) as advance:
            for thing in things:
                yield thing
                advance(1)


def escaped(text: str) -> str:
    """Return text as it may be shown on a terminal; in a pipe it stays as it is."""
    return visible(text) if sys.stdout.isatty() else text


def as_text(given: str | bytes) -> str:
    """Return an argument, or what a pipe gave, as Unicode text; what is none becomes U+FFFD."""
    return (os.fsencode(given) if isinstance(given, str) else given).decode("utf-8", errors="replace")


def say(message: str) -> None:
    """Write one message to stderr, with control characters spelled out."""
    print(visible(f"mrag: {message}"), file=sys.stderr, flush=True)  # noqa: T201 - this is the place that prints
