"""`mrag eval` as a user runs it."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from evaluations import HARBOUR, ROWS, write_rows
from loopback import Answer, serving


def _mrag(*arguments: str | Path, **others: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mrag_cli", *map(str, arguments)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MRAG_")}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment, **others)


@pytest.fixture
def town(tmp_path: Path) -> Path:
    """Return a data set of four questions about two documents."""
    return write_rows(tmp_path / "town.jsonl")


def test_tables_go_to_the_pipe_and_the_report_to_a_file(town: Path) -> None:
    """Markdown is written to a pipe, everything to the report; what is not measured is said."""
    report = town.parent / "report.json"
    done = _mrag("eval", town, "--systems", "mrag,fixed,overlap", "--budgets", "40,128", "-o", report)
    assert done.returncode == 0, done.stderr
    assert "### Answer recall" in done.stdout
    assert "| town | mrag | 3 |" in done.stdout
    assert "1 of 4 questions have no short answer" in done.stderr
    assert "1 of 4 questions have no evidence" in done.stderr
    found = json.loads(report.read_text("utf-8"))
    assert [row["budget"] for row in found["results"]] == [40, 128] * 3
    assert all(row["measures"]["tokens"]["mean"] <= row["budget"] + 2 for row in found["results"])
    assert found["results"][0]["measures"]["answer_recall"]["questions"] == 3
    assert len(list((town.parent / "report.json.work").iterdir())) == 3


def test_a_run_is_deterministic_and_resumes(town: Path) -> None:
    """A second run takes the kept cells and says the same; one from the beginning differs in times only."""
    report = town.parent / "report.json"
    arguments = ["eval", town, "--systems", "mrag,semantic", "--orders", "similarity,position"]
    first = _mrag(*arguments, "-o", report)
    kept = report.read_bytes()
    again = _mrag(*arguments, "-o", report)
    assert first.stdout == again.stdout
    assert report.read_bytes() == kept
    fresh = json.loads(_mrag(*arguments, "--json").stdout)
    old = json.loads(kept)
    for row in (*fresh["results"], *old["results"]):
        del row["measures"]["milliseconds"]
    assert fresh["results"] == old["results"]
    assert fresh["datasets"] == old["datasets"]


def test_bad_rows_are_said_and_the_rest_is_measured(tmp_path: Path) -> None:
    """A broken line, an empty context and a missing file end with code 3, after everything else was done."""
    path = write_rows(tmp_path / "town.jsonl")
    with path.open("a", encoding="utf-8") as file:
        file.write("{broken\n")
        file.write(json.dumps({"input": "Q?", "context": " ", "answers": ["x"]}) + "\n")
        file.write(json.dumps({"input": "Q?", "context_file": "gone.md", "answers": ["x"]}) + "\n")
    done = _mrag("eval", path, "--systems", "fixed", "--budgets", "128")
    assert done.returncode == 3
    for line, said in ((5, "not JSON"), (6, "the context is empty"), (7, "there is no such file")):
        assert f"{path}:{line}: " in done.stderr
        assert said in done.stderr
    assert "| town | fixed | 3 |" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--retrievers", "dense"], "--embedder"),
        (["--retrievers", "bm26"], "is none of"),
        (["--budgets", "0"], "whole numbers"),
        (["--budgets", "x"], "whole numbers"),
        (["--cutoffs", "11"], "from 1 to 10"),
        (["--orders", ""], "is empty"),
        (["--distractors", "1,x"], "whole numbers"),
        (["--systems", "unknown"], "no such system"),
        (["-o", "/nowhere/at/all.json"], "existing folder"),
        (["--contexts", "/nowhere"], "a folder of documents"),
    ],
)
def test_what_makes_no_sense_is_refused_at_once(town: Path, arguments: list[str], said: str) -> None:
    """A wrong option ends with code 2 and says what is expected."""
    done = _mrag("eval", town, *arguments)
    assert done.returncode == 2
    assert said in done.stderr


def test_two_data_sets_need_two_names(town: Path) -> None:
    """Data sets of the same name could not be told apart in the report."""
    (town.parent / "other").mkdir()
    other = write_rows(town.parent / "other" / "town.jsonl")
    done = _mrag("eval", town, other)
    assert done.returncode == 2
    assert "same name" in done.stderr


def test_a_stream_and_an_index_are_measured_too(town: Path) -> None:
    """Markers of a stream and a ready index stand beside the made systems, as a corpus."""
    folder = town.parent
    rows = folder / "documents.jsonl"
    rows.write_text(json.dumps({"id": "quay", "text": HARBOUR}) + "\n", "utf-8")
    units = _mrag("tag", rows).stdout
    markers = _mrag("extract", input=units).stdout
    (folder / "markers.jsonl").write_text(markers, "utf-8")
    assert _mrag("index", folder / "markers.jsonl", "-o", folder / "kb").returncode == 0
    done = _mrag(
        *("eval", town, "--systems", "fixed", "--corpus", "--budgets", "128"),
        *("--system", f"llm={folder / 'markers.jsonl'}", "--system", f"kb+paper={folder / 'kb'}"),
    )
    assert done.returncode == 0, done.stderr
    assert "llm: no document for 2 of 4 questions of town" in done.stderr
    assert "| town | llm | 2 |" in done.stdout
    assert "| town | kb+paper | 2 |" in done.stdout


def test_distractors_and_figures(town: Path) -> None:
    """The study of distractors has a table, and the figures are drawn."""
    plots = town.parent / "plots"
    done = _mrag(
        *("eval", town, "--systems", "mrag,fixed", "--budgets", "128", "--distractors", "2,9,all"),
        *("--plots", plots, "-o", town.parent / "report.json"),
    )
    assert done.returncode == 0, done.stderr
    assert "| order | 1 | 2 | all |" in done.stdout
    assert "the study of 9 leaves it out" in done.stderr
    assert {path.suffix for path in plots.iterdir()} == {".png", ".svg"}
    assert "geometry.png" in {path.name for path in plots.iterdir()}


def test_answers_are_measured_with_a_model(town: Path) -> None:
    """F1 has its repetitions' deviation, and the calls pass through the cache."""
    cache = town.parent / "cache.sqlite3"
    with serving(lambda asked: Answer("Ida Marsh" if "quay?" in asked.prompt else "nobody")) as server:
        arguments = [
            *("eval", town, "--systems", "mrag,fixed", "--budgets", "128", "--cache", cache),
            *("--model", "openai/m", "--api-base", server.url, "--repeat", "2"),
        ]
        first = _mrag(*arguments)
        asked = len(server.asked)
        again = _mrag(*arguments)
        assert len(server.asked) == asked == 16
    assert "| town | mrag | 4 | **.250 ± .000** |" in first.stdout
    assert [line for line in first.stdout.splitlines() if "±" in line] == [
        line for line in again.stdout.splitlines() if "±" in line
    ]


def test_a_killed_run_keeps_what_is_finished(tmp_path: Path) -> None:
    """After a kill, finished cells are there and the next run takes them."""
    rows = [
        {**row, "_id": f"{row['_id']}-{n}", "context": f"{row['context']}\n\n{n}"}
        for n in range(12)
        for row in ROWS
    ]
    town = write_rows(tmp_path / "town.jsonl", rows)
    work = tmp_path / "work"
    command = [sys.executable, "-m", "mrag_cli", "eval", str(town), "--work", str(work)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not (work.is_dir() and list(work.glob("*.json"))) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    finished = {path.name: path.stat().st_mtime_ns for path in work.glob("*.json")}
    assert finished
    assert _mrag("eval", town, "--work", work).returncode == 0
    after = {path.name: path.stat().st_mtime_ns for path in work.glob("*.json")}
    assert len(after) == 4
    assert finished.items() <= after.items()
