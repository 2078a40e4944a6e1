import json
import subprocess
import sys
from pathlib import Path

import pytest
from kb import build, group
from typer.testing import CliRunner, Result

from mrag_cli.cli.main import app


def _run(*arguments: object, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, [*map(str, arguments)], input=stdin)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lexical index."""
    directory = tmp_path_factory.mktemp("query-command") / "kb"
    entries = [
        ("lamp colour", "The lamp is [red]green[/red]. :warning:"),
        ("lamp oil", "Oil \x1b[31m burns."),
    ]
    build(directory, [group("port", entries), group("kelp", [("kelp drying", "Two days.")])])
    return directory


def test_a_pipe_gets_the_bare_context(index: Path) -> None:
    """The context, as it is in the documents, and nothing else; markup and escapes are just text in it."""
    done = _run("query", index, "lamp oil")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout == "Oil \x1b[31m burns.\n\nThe lamp is [red]green[/red]. :warning:\n"
    assert _run("query", index, stdin="kelp\n").stdout == "Two days.\n"


def test_nothing_found_is_no_failure(index: Path) -> None:
    """Exit 0, an empty context, no hits, and a notice."""
    done = _run("query", index, "unheard")
    assert (done.exit_code, done.stdout) == (0, "")
    assert "nothing found" in done.stderr
    found = json.loads(_run("query", index, "unheard", "--json").stdout)
    assert (found["context"], found["hits"], found["tokens"]) == ("", [], 0)


def test_json_and_explain(index: Path) -> None:
    """--json is one object on one line; --explain adds why each hit ranked and was packed."""
    plain = json.loads(_run("query", index, "lamp", "--json", "--paper").stdout)
    assert "explain" not in plain["hits"][0]
    found = json.loads(_run("query", index, "lamp", "--explain", "--paper", "--top-k", 1).stdout)
    assert len(found["hits"]) == 1
    assert found["hits"][0]["explain"]["bm25"] == found["hits"][0]["score"] > 0
    assert found["hits"][0]["explain"]["packing"] == "packed"


def test_a_batch_is_answered_in_order(index: Path, tmp_path: Path) -> None:
    """One line in, one line out, ids kept; the answers are those of single questions."""
    lines = [{"id": 7, "question": "kelp"}, {"_id": "x", "input": "lamp oil"}, {"question": "unheard"}]
    batch = tmp_path / "batch"
    batch.write_text("".join(json.dumps(line) + "\n" for line in lines))
    answers = [json.loads(line) for line in _run("query", index, "--batch", batch).stdout.splitlines()]
    assert [answer.get("id") or answer.get("_id") for answer in answers] == [7, "x", None]
    single = json.loads(_run("query", index, "lamp oil", "--json").stdout)
    assert answers[1] == {"_id": "x", **single}
    batch.write_text('{"question":"kelp"}\n{"ask":1}\n')
    wrong = _run("query", index, "--batch", batch)
    assert wrong.exit_code == 4
    assert f"{batch}:2" in wrong.stderr


def test_a_coprocess_answers_each_line_at_once(index: Path) -> None:
    """Through a pipe each answer comes before the next question is asked."""
    process = subprocess.Popen(
        [sys.executable, "-m", "mrag_cli", "query", str(index), "--batch", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    for question, wanted in (("kelp", "Two days."), ("lamp colour", "The lamp is")):
        process.stdin.write(json.dumps({"question": question}) + "\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["context"].startswith(wanted)
    process.communicate(timeout=30)
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["lamp", "--batch", "x"], 2),
        (["lamp", "--retriever", "dense"], 2),
        (["lamp", "--retriever", "other"], 2),
        (["lamp", "--exact", "--ef", "5"], 2),
        (["lamp", "--budget", "-1"], 2),
        (["--batch", "/nowhere"], 2),
        (["lamp", "--answer"], 2),
        (["lamp", "--budget", "0"], 0),
        (["lamp", "--exact"], 0),
    ],
)
def test_options_that_contradict(index: Path, arguments: list[str], code: int) -> None:
    """What makes no sense is a usage error."""
    done = CliRunner().invoke(app, ["query", str(index), *arguments], env={"MRAG_MODEL": None})
    assert done.exit_code == code, done.output


def test_no_index(tmp_path: Path) -> None:
    """Where there is no index the exit code is 10, and the message says how to make one."""
    done = _run("query", tmp_path / "none", "lamp")
    assert done.exit_code == 10
    assert "mrag index -o" in done.stderr
