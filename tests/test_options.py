"""Options that several commands share."""

import os
import pty
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from mrag_cli.cli.options import Embedder, IndexDirectory, Output, Quiet, Stream, Threads, Wait

app = typer.Typer()


@app.command()
def show(
    directory: IndexDirectory,
    source: Stream = None,
    output: Output = None,
    quiet: Quiet = False,
    embedder: Embedder = None,
    threads: Threads = 1,
    wait: Wait = 0.0,
) -> None:
    """Say what the options came to."""
    typer.echo(f"{directory} {source} {output} {quiet} {embedder} {threads} {wait}")


def _shown(*arguments: str) -> str:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    return result.stdout.strip()


def test_what_is_left_out_has_its_default() -> None:
    """A pipe is read where no stream is named."""
    assert _shown("kb") == "kb None None False None 1 0.0"


def test_options_by_their_long_and_short_names() -> None:
    """Every shared option is read."""
    long = ("--output", "o", "--quiet", "--embedder", "m/e", "--threads", "4", "--wait", "1.5")
    assert _shown("kb", "s", *long) == "kb s o True m/e 4 1.5"
    assert _shown("kb", "-", "-o", "o", "-q") == "kb - o True None 1 0.0"


@pytest.mark.parametrize("wrong", [("--threads", "0"), ("--wait", "-1"), ("--threads", "many"), ()])
def test_values_out_of_range_are_usage_errors(wrong: tuple[str, ...]) -> None:
    """Numbers have their limits, and the directory must be named."""
    assert CliRunner().invoke(app, [*(["kb"] if wrong else []), *wrong]).exit_code == 2


@pytest.fixture
def terminal() -> Iterator[int]:
    """Make a terminal standard input."""
    leader, follower = pty.openpty()
    kept = os.dup(0)
    os.dup2(follower, 0)
    yield leader
    os.dup2(kept, 0)
    for number in (leader, follower, kept):
        os.close(number)


def test_a_terminal_is_read_only_when_asked(terminal: int, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001
    """With a terminal and no stream the usage is shown, exit code 2; ``-`` and a file are taken."""
    with open(0, closefd=False) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        with pytest.raises(SystemExit) as ended:
            app(["kb"], prog_name="mrag")
        assert ended.value.code == 2
        for named in ("-", str(Path(__file__))):
            with pytest.raises(SystemExit) as ended:
                app(["kb", named], prog_name="mrag")
            assert ended.value.code == 0
