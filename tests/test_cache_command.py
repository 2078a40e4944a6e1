import json
import sqlite3
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mrag_cli.cli.main import app
from mrag_cli.parts.llm.cache import ReplyCache
from mrag_cli.parts.llm.request import Reply, Usage


def filled(path: Path, *, days_old: int = 0) -> Path:
    """Write a cache with three replies."""
    cache = ReplyCache(path)
    for number in range(3):
        reply = Reply("x" * 1000, "stop", Usage(10, 2), 0.5)
        cache.put(str(number).encode(), reply, "openai/[red]m" if number else "other", "extract")
    cache.close()
    base = sqlite3.connect(path)
    base.execute("UPDATE replies SET used = used - ? WHERE key != ?", (days_old * 86_400, b"0"))
    base.commit()
    base.close()
    return path


def run(*arguments: str, **environment: str) -> tuple[int, str, str]:
    """Run the command; returns exit code, stdout and stderr."""
    done = CliRunner().invoke(app, ["cache", *arguments], env={"MRAG_CACHE": None, **environment})
    return done.exit_code, done.stdout, done.stderr


def test_what_the_cache_holds_is_shown(tmp_path: Path) -> None:
    """Path, replies, size, cost, and replies by model; names are text."""
    path = filled(tmp_path / "c")
    code, shown, _ = run("--cache", str(path))
    assert code == 0
    assert f"{path}: 3 replies" in shown
    assert "paid with $1.50" in shown
    assert "2 openai/[red]m" in shown
    found = json.loads(run("--json", MRAG_CACHE=str(path))[1])
    assert found["replies"] == 3
    assert found["models"] == {"openai/[red]m": 2, "other": 1}
    assert found["bytes"] > 0
    assert found["cost"] == 1.5


def test_replies_are_dropped_by_age_and_by_size(tmp_path: Path) -> None:
    """--unused-for drops what was not used for so many days, --keep-mb 0 everything."""
    path = filled(tmp_path / "c", days_old=100)
    _, shown, _ = run("--cache", str(path), "--unused-for", "90")
    assert "1 replies" in shown
    assert "2 dropped" in shown
    found = json.loads(run("--cache", str(path), "--keep-mb", "0", "--json")[1])
    assert (found["replies"], found["dropped"]) == (0, 1)


@pytest.mark.parametrize("named", [True, False])
def test_a_cache_that_is_not_there(tmp_path: Path, named: bool) -> None:
    """One that was named is the user's error; the platform's own is empty as yet. Nothing is made."""
    if named:
        code, _, told = run("--cache", str(tmp_path / "none"))
        assert code == 2
        assert "there is no cache" in told
    else:
        code, shown, _ = run(XDG_CACHE_HOME=str(tmp_path))
        assert code == 0
        assert "nothing yet" in shown
        assert json.loads(run("--json", XDG_CACHE_HOME=str(tmp_path))[1])["replies"] == 0
    assert list(tmp_path.iterdir()) == []


def test_embeddings_are_counted_and_dropped_too(tmp_path: Path) -> None:
    """Vectors have a line of their own, a number in the JSON, and go when they were not used for long."""
    path = filled(tmp_path / "c")
    cache = ReplyCache(path)
    cache.put_vectors({b"a": bytes(64), b"b": bytes(64)}, "openai/small")
    cache.close()
    assert "2 embeddings" in run("--cache", str(path))[1]
    code, shown, _ = run("--cache", str(path), "--keep-mb", "0", "--json")
    assert code == 0
    assert (json.loads(shown)["dropped"], json.loads(shown)["embeddings"]) == (5, 0)
