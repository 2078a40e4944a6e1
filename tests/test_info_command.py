import json
from pathlib import Path

import pytest
from kb import build, group
from typer.testing import CliRunner, Result

from mrag_cli.cli.main import app
from mrag_cli.parts.store import graph


def _run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [*map(str, arguments)])


def test_info_for_people_and_programs(tmp_path: Path) -> None:
    """A line a fact, or one JSON object."""
    build(tmp_path / "kb", [group("a", [("lamp", "one"), ("kelp", "two")])], dense=True)
    shown = _run("info", tmp_path / "kb")
    assert shown.exit_code == 0
    assert "markers      2 (2 llm)" in shown.stdout
    assert "embedder     hash, 16 dimensions" in shown.stdout
    found = json.loads(_run("info", tmp_path / "kb", "--json").stdout)
    assert found["markers"] == 2
    assert _run("info", tmp_path).exit_code == 10


def test_verify(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All is well with a count of files; damage is listed and ends with 13; --recall measures the graphs."""
    monkeypatch.setattr(graph, "SMALLEST_GRAPH", 10)
    index = tmp_path / "kb"
    build(index, [group(f"d{number}", [(f"lamp {number}", "x")]) for number in range(30)], dense=True)
    done = _run("verify", index, "--recall", "--ef", 30)
    assert done.exit_code == 0
    assert "6 files, all as they were written" in done.stdout
    assert "recall@10 of the graphs 1.0000" in done.stdout
    assert _run("verify", index, "--quiet").stdout == ""
    path = index / "segments/1/units.jsonl"
    path.write_bytes(path.read_bytes()[:-1] + b" ")
    wrong = _run("verify", index)
    assert wrong.exit_code == 13
    assert wrong.stdout == f"{index}/segments/1/units.jsonl: not the bytes that were written\n"
    assert "1 of 6 files" in wrong.stderr
    build(tmp_path / "lexical", [group("a", [("lamp", "one")])])
    assert "every search is exact" in _run("verify", tmp_path / "lexical", "--recall").stdout
