"""The app: its commands, and what becomes of whatever they raise."""

import io
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
import typer
from kb import mrag
from typer.testing import CliRunner

import mrag_cli
from mrag_cli.cli.main import app
from mrag_cli.ground.errors import MragError


def _kinds(kind: type[MragError] = MragError) -> Iterator[type[MragError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from _kinds(below)


def _ending(error: BaseException, *options: str) -> tuple[int, str]:
    """Return the exit code and what stderr says when a command of the app raises."""
    alone = typer.Typer()

    @alone.command()
    def fail() -> None:
        """Raise what the test wants."""
        typer.echo("before")
        raise error

    group: Any = typer.main.get_command(app)
    group.commands = {"fail": typer.main.get_command(alone)}
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as ended:
        group.main([*options, "fail"], prog_name="mrag")
    assert out.getvalue() == "before\n"
    return int(ended.value.code or 0), err.getvalue()


def _made(kind: type[MragError]) -> MragError:
    return kind("a.jsonl", 3, "wrong\x1b[2J") if kind.__name__ == "InputError" else kind("wrong\x1b[2J")  # type: ignore[call-arg,arg-type]


@pytest.mark.parametrize("kind", [*_kinds()], ids=lambda kind: kind.__name__)
def test_each_error_ends_with_its_code_and_its_message(kind: type[MragError]) -> None:
    """The message is one line on stderr with control characters spelled out; there is no traceback."""
    code, said = _ending(_made(kind))
    assert code == kind.exit_code
    place = "a.jsonl:3: " if kind.__name__ == "InputError" else ""
    assert said == f"mrag: error: {place}wrong\\x1b[2J\n"


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (KeyboardInterrupt(), 130, "mrag: interrupted\n"),
        (FileNotFoundError(2, "No such file", "a.txt"), 1, "mrag: error: a.txt: No such file\n"),
        (OSError("no space"), 1, "mrag: error: operating system: no space\n"),
        (MemoryError(), 1, "mrag: MemoryError: ; this is a bug: `mrag --debug …` shows where\n"),
        (ValueError("odd"), 1, "mrag: ValueError: odd; this is a bug: `mrag --debug …` shows where\n"),
        (typer.Exit(7), 7, ""),
    ],
    ids=lambda value: type(value).__name__,
)
def test_other_endings(error: BaseException, code: int, said: str) -> None:
    """An interrupt, an operating system's error and a bug each say what they are; an exit says nothing."""
    assert _ending(error) == (code, said)


def test_usage_errors_of_typer_stay_its_own() -> None:
    """A wrong value is explained by Typer and exits with 2."""
    code, said = _ending(typer.BadParameter("no such thing"))
    assert code == 2
    assert "no such thing" in said


def test_debug_shows_the_traceback_before_the_message() -> None:
    """With --debug any error comes with where it was raised."""
    code, said = _ending(MragError("wrong"), "--debug")
    assert code == 1
    assert said.startswith("Traceback")
    assert said.endswith("mrag: error: wrong\n")


def test_the_commands_are_listed_in_the_order_of_the_pipeline() -> None:
    """Help shows the pipeline from documents to answers first."""
    group: Any = typer.main.get_command(app)
    names = group.list_commands(None)
    assert names[:6] == ["tag", "extract", "validate", "index", "query", "update"]
    assert set(names[6:]) == {"chop", "eval", "chunk", "info", "verify", "cache"}


def test_every_command_has_help_with_an_example() -> None:
    """--help and -h of each command show how it is used."""
    group: Any = typer.main.get_command(app)
    for name in group.list_commands(None):
        for option in ("--help", "-h"):
            result = CliRunner().invoke(app, [name, option])
            assert result.exit_code == 0
            assert f"mrag {name}" in result.stdout
            assert "Example" in result.stdout


def test_version_and_no_arguments() -> None:
    """--version says name and version; without arguments there is help and code 2."""
    done = mrag("--version")
    assert (done.returncode, done.stdout) == (0, f"mrag {mrag_cli.__version__}\n")
    done = mrag()
    assert done.returncode == 2
    assert "mrag tag docs | mrag extract | mrag validate | mrag index -o kb" in done.stdout + done.stderr


@contextmanager
def _closed_pipe() -> Iterator[io.FileIO]:
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "wb", buffering=0) as pipe:  # noqa: PTH123 - a descriptor, not a path
        yield pipe


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_pipe_that_nobody_reads(unbuffered: str, tmp_path: Path) -> None:
    """Whatever the buffering, a closed pipe ends with 141 and not a word."""
    (tmp_path / "a.txt").write_text("One sentence. " * 9)
    command = [sys.executable, "-m", "mrag_cli", "tag", str(tmp_path / "a.txt")]
    with _closed_pipe() as pipe:
        done = subprocess.run(
            command,
            stdout=pipe,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        )
    assert (done.returncode, done.stderr) == (141, b"")


def test_a_disk_that_is_full() -> None:
    """A result that cannot be written is an error of the operating system, not a silent loss."""
    with Path("/dev/full").open("wb") as full:
        command = [sys.executable, "-m", "mrag_cli", "tag", __file__]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 1
    assert b"No space left" in done.stderr
    assert b"Traceback" not in done.stderr
