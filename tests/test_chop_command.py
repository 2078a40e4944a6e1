import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from loopback import Answer, Asked, serving
from manuals import manual
from typer.testing import CliRunner

from mrag_cli.cli.main import app

MRAG = [sys.executable, "-m", "mrag_cli"]


def run(*arguments: str) -> tuple[int, str]:
    """Run the command in this process; returns exit code and output."""
    result = CliRunner().invoke(app, list(arguments))
    return result.exit_code, result.output


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with two sibling manuals."""
    found = tmp_path / "manuals"
    found.mkdir()
    for product in ("X10", "X20"):
        (found / f"{product.lower()}.md").write_text(manual(f"Orla Brew {product}"), "utf-8")
    return found


def test_chop_index_and_update(folder: Path, tmp_path: Path) -> None:
    """Chopped manuals are indexed; unchanged ones give nothing, changed and vanished ones what is due."""
    stream, index = str(tmp_path / "s.jsonl"), str(tmp_path / "kb")
    assert run("chop", str(folder), "-o", stream)[0] == 0
    assert run("index", stream, "-o", index)[0] == 0
    assert run("chop", str(folder), "--changed-since", index, "-o", stream)[0] == 0
    assert Path(stream).read_bytes() == b""
    (folder / "x10.md").unlink()
    (folder / "x20.md").write_text(manual("Orla Brew X30"), "utf-8")
    assert run("chop", str(folder), "--changed-since", index, "-o", stream)[0] == 0
    records = [json.loads(line) for line in Path(stream).read_text("utf-8").splitlines()]
    assert records[0]["doc"] == "manuals/x20.md"
    assert records[-1] == {"type": "deletion", "doc": "manuals/x10.md"}
    assert run("update", index, stream)[0] == 0


def test_a_question_that_names_the_product_finds_its_chunk(folder: Path, tmp_path: Path) -> None:
    """Of two manuals with the same words, the one the question names comes first, under its name."""
    stream, index = str(tmp_path / "s.jsonl"), str(tmp_path / "kb")
    run("chop", str(folder), "-o", stream, "--chunk-tokens", "150")
    run("index", stream, "-o", index)
    for product in ("X10", "X20"):
        code, output = run("query", index, f"Orla Brew {product}: how do I descale the lamp?", "--json")
        assert code == 0
        found = json.loads(output)
        assert found["hits"][0]["doc"] == f"manuals/{product.lower()}.md"
        assert f"[coffee machine: Orla Brew {product}]" in found["context"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--overlap", "10"], "--chunks windows"),
        (["--chunks", "windows", "--chunk-tokens", "10", "--overlap", "10"], "less than"),
        (["--domain", "recipes.txt"], "needs --model"),
        (["--dry-run"], "--dry-run needs --model"),
        (["--anchor", "first"], "--anchor needs --model"),
        (["--as", "/"], "--as"),
        (["--model", "openai/x", "--no-cache", "--domain", "none.txt"], "cannot be read"),
    ],
)
def test_wrong_options_are_explained(folder: Path, options: list[str], message: str) -> None:
    """Options that contradict each other or name nothing end with 2 and say what to do."""
    code = subprocess.run(
        [*MRAG, "chop", str(folder), *options], capture_output=True, text=True, check=False, timeout=120
    )
    assert code.returncode == 2
    assert message in code.stderr


def decided(asked: Asked) -> Answer:
    """Answer slowly: every chunk continues, the model is what the first one names."""
    shown = str(asked.body["messages"][1]["content"])
    if "## Later chunk" in shown:
        return Answer('{"same": true}', delay=0.1)
    name = "X20" if "X20" in shown else "X10"
    return Answer(
        json.dumps({"category": "kettle", "nouns": None, "model": f"Orla {name}", "confidence": 0.9}),
        delay=0.1,
    )


def test_killed_and_resumed_is_byte_identical(folder: Path, tmp_path: Path) -> None:
    """A run that is killed keeps its replies: the next pays for the rest alone and writes the same bytes."""
    with serving(decided) as server:

        def command(cache: str, output: str) -> list[str]:
            asked = ["--model", "openai/loopback", "--api-base", server.url, "--concurrency", "2"]
            files = ["--cache", str(tmp_path / cache), "-o", str(tmp_path / output)]
            return [*MRAG, "chop", str(folder), "--chunk-tokens", "150", *asked, *files]

        killed = subprocess.Popen(command("a.db", "a.jsonl"), stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while server.returned < 6 and time.monotonic() < deadline:
            time.sleep(0.02)
        os.kill(killed.pid, signal.SIGKILL)
        killed.wait()
        assert not (tmp_path / "a.jsonl").exists()
        paid = server.returned
        assert subprocess.run(command("a.db", "a.jsonl"), capture_output=True, check=False).returncode == 0
        resumed = server.returned - paid
        before = server.returned
        assert subprocess.run(command("b.db", "b.jsonl"), capture_output=True, check=False).returncode == 0
        whole = server.returned - before
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()
    assert resumed <= whole - 4


def test_a_dry_run_says_what_would_be_asked(folder: Path, tmp_path: Path) -> None:
    """Chunks, decisions and tokens are printed; no call is made."""
    with serving(decided) as server:
        code, output = run(
            "chop",
            str(folder),
            "--model",
            "openai/loopback",
            "--api-base",
            server.url,
            "--cache",
            str(tmp_path / "c.db"),
            "--dry-run",
        )
        assert code == 0
        assert server.asked == []
    assert "continuity decisions" in output


def test_help_shows_examples() -> None:
    """The help has an example of the whole way."""
    code, output = run("chop", "--help")
    assert code == 0
    assert "mrag chop manuals | mrag index -o kb" in output
