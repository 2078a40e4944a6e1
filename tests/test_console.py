"""What the command says on stderr."""

import os
import pty
import sys
from collections.abc import Callable
from typing import TextIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrag_cli.cli.console import Console, as_text, escaped, say
from mrag_cli.ground.errors import DocumentsFailed


def test_notices_and_failures_go_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    """Each is one line with the command's name, control characters spelled out; stdout stays clean."""
    console = Console()
    console.notice("so be it")
    console.failed("a\x1b[2J", "cannot be read")
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "mrag: so be it\nmrag: failed: a\\x1b[2J: cannot be read\n"
    assert console.failures == [("a\x1b[2J", "cannot be read")]


def test_quiet_silences_notices_alone(capsys: pytest.CaptureFixture[str]) -> None:
    """A quiet console still says what failed."""
    console = Console(quiet=True)
    console.notice("so be it")
    console.failed("a", "cannot be read")
    say("error: told")
    assert capsys.readouterr().err == "mrag: failed: a: cannot be read\nmrag: error: told\n"


@pytest.mark.parametrize(("number", "said"), [(1, "1 document failed"), (3, "3 documents failed")])
def test_a_run_with_failures_ends_with_their_number(number: int, said: str) -> None:
    """The end of a run raises if anything failed, and says that the rest is written."""
    console = Console(quiet=True)
    console.finish()
    for name in range(number):
        console.failed(str(name), "no")
    with pytest.raises(DocumentsFailed, match=said):
        console.finish()


def test_no_progress_where_stderr_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """Things pass through in order, and nothing is drawn."""
    console = Console()
    assert list(console.counted(iter("abc"), "letters", 3)) == ["a", "b", "c"]
    with console.progress("work") as advance:
        advance()
        advance(3, total=9)
    assert capsys.readouterr() == ("", "")


def _on_terminal(monkeypatch: pytest.MonkeyPatch, name: str, body: Callable[[TextIO], None]) -> str:
    leader, follower = pty.openpty()
    with open(follower, "w", encoding="utf-8") as terminal:  # noqa: PTH123 - a descriptor, not a path
        monkeypatch.setattr(sys, name, terminal)
        monkeypatch.setenv("TERM", "xterm")
        body(terminal)
        terminal.flush()
        shown = os.read(leader, 1 << 16)
    os.close(leader)
    return shown.decode()


def test_progress_on_a_terminal_leaves_room_for_notices(monkeypatch: pytest.MonkeyPatch) -> None:
    """The line is drawn, and a notice in between is shown whole, markup and all."""

    def body(_: TextIO) -> None:
        console = Console()
        for letter in console.counted(iter("abc"), "letters", 3):
            console.notice(f"saw [red]{letter}[/] :warning: " + "long " * 40 + "\x1b[2J")

    shown = _on_terminal(monkeypatch, "stderr", body)
    assert "letters" in shown
    assert "3/3" in shown
    for letter in "abc":
        assert f"mrag: saw [red]{letter}[/] :warning: " + "long " * 40 + "\\x1b[2J" in shown
    assert "\x1b[2J" not in shown


def test_a_quiet_terminal_sees_no_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    """Quiet is quiet on a terminal, too."""

    def body(terminal: TextIO) -> None:
        assert list(Console(quiet=True).counted(iter("ab"), "letters")) == ["a", "b"]
        terminal.write("end")

    assert _on_terminal(monkeypatch, "stderr", body) == "end"


def test_text_is_escaped_for_a_terminal_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What goes into a pipe is not changed."""
    assert escaped("\x1b[2J") == "\x1b[2J"

    def body(terminal: TextIO) -> None:
        terminal.write(escaped("\x1b[2J"))

    assert _on_terminal(monkeypatch, "stdout", body) == "\\x1b[2J"
    capsys.readouterr()


@given(st.binary(max_size=20))
def test_any_argument_is_text(given_bytes: bytes) -> None:
    """Bytes that are no UTF-8 become U+FFFD, as an argument and from a pipe alike; text stays as it is."""
    text = as_text(given_bytes)
    assert text == given_bytes.decode("utf-8", "replace")
    assert as_text(os.fsdecode(given_bytes)) == text
    assert text.encode() or not given_bytes
    assert as_text(text) == text
