"""`mrag info` and `mrag verify` as they are called."""

import json
import os
from pathlib import Path

import pytest
from command import run
from kb import build, group, update

from mrag_cli.records.models import Deletion


@pytest.fixture
def index(tmp_path: Path) -> Path:
    """Make an index with vectors, two segments and a dead document."""
    kb = tmp_path / "kb"
    build(
        kb,
        [group("a", [("herons", "high"), ("otters", "low")]), group("b", [("terns", "hover")])],
        dense=True,
    )
    update(kb, [group("c", [("swifts", "asleep")]), Deletion("b")])
    return kb


def test_info_is_a_table_for_people(index: Path) -> None:
    """Each line has a name and what there is of it."""
    lines = [line.split(maxsplit=1) for line in run("info", index).stdout.splitlines()]
    shown = {line[0]: line[1] for line in lines}
    assert shown["index"].startswith(f"{index}, format 1, written by mrag ")
    assert shown["generation"] == "2"
    assert shown["documents"] == "2"
    assert shown["markers"] == "3 (3 llm)"
    assert shown["dead"] == "1 documents, 1 markers"
    assert shown["segments"] == "2"
    assert shown["lexical"].startswith("BM25, k1 0.9, b 0.4, length pivot ")
    assert shown["embedder"] == "hash, 16 dimensions"


def test_info_as_json_says_the_same(index: Path) -> None:
    """One object, on one line."""
    found = json.loads(run("info", index, "--json").stdout)
    assert (found["documents"], found["markers"], found["keys"], found["units"]) == (2, 3, 3, 3)
    assert found["dead"] == {"documents": 1, "units": 1, "markers": 1, "keys": 1}
    assert found["origins"] == {"llm": 3}
    assert found["embedder"]["dimension"] == 16
    named = [
        path for path in index.rglob("*") if path.is_file() and path.name not in ("manifest.json", "lock")
    ]
    assert found["bytes"] == sum(path.stat().st_size for path in named)


def test_an_empty_index_is_described(tmp_path: Path) -> None:
    """Nothing in it is no error."""
    build(tmp_path / "kb", [])
    shown = run("info", tmp_path / "kb").stdout
    assert "0 (none)" in shown
    assert "embedder     none" in shown


def test_a_directory_whose_name_is_no_unicode(index: Path) -> None:
    """Its name is shown as U+FFFD, as JSON too."""
    strange = index.with_name(os.fsdecode(b"kb\xff"))
    index.rename(strange)
    assert json.loads(run("info", strange, "--json").stdout)["directory"].endswith("kb\ufffd")
    assert "kb\ufffd" in run("info", strange).stdout
    assert "all as they were written" in run("verify", strange).stdout


def test_verify_counts_the_files(index: Path) -> None:
    """A whole index is said to be whole, on stdout; --quiet says nothing."""
    shown = run("verify", index).stdout
    files = [path for path in (index / "segments").rglob("*") if path.is_file()]
    assert shown == f"{index}: {len(files)} files, all as they were written\n"
    assert run("verify", index, "-q").output == ""


def test_verify_without_graphs_has_no_recall(index: Path) -> None:
    """A small index has no graph, so every search is exact."""
    assert "no graphs, every search is exact" in run("verify", index, "--recall").stdout


@pytest.mark.parametrize("change", ["flip", "cut", "remove"])
def test_verify_names_each_file_that_is_not_as_it_was(index: Path, change: str) -> None:
    """Each damaged file is a line, the number and what to do an error, exit code 13."""
    damaged = sorted(path for path in (index / "segments").rglob("*") if path.name == "vectors")
    assert len(damaged) == 2
    for path in damaged:
        content = path.read_bytes()
        if change == "flip":
            path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        elif change == "cut":
            path.write_bytes(content[:-1])
        else:
            path.unlink()
    done = run("verify", index, "--quiet", code=13)
    assert len(done.stdout.splitlines()) == 2
    for path in damaged:
        assert f"{path}: " in done.stdout
    assert "2 of " in done.stderr
    assert "restore the directory from a copy or build it again" in done.stderr


@pytest.mark.parametrize("command", ["info", "verify"])
def test_no_index(command: str, tmp_path: Path) -> None:
    """A folder without an index, no folder, and a file end with 10."""
    (tmp_path / "file").touch()
    for name in ("", "none", "file"):
        assert "mrag index -o" in run(command, tmp_path / name, code=10).stderr
