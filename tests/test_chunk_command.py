import json
import subprocess
import sys
from pathlib import Path

import pytest
from manuals import manual
from typer.testing import CliRunner

from mrag_cli.cli.main import app

MRAG = [sys.executable, "-m", "mrag_cli"]


@pytest.mark.parametrize(("options", "origin"), [([], "naive"), (["--method", "cosine"], "cosine")])
def test_chunks_are_a_stream_for_index(tmp_path: Path, options: list[str], origin: str) -> None:
    """The markers carry the method's name and can be indexed."""
    source, stream = tmp_path / "a.md", tmp_path / "s.jsonl"
    source.write_text(manual("Orla Brew X10"), "utf-8")
    assert CliRunner().invoke(app, ["chunk", str(source), *options, "-o", str(stream)]).exit_code == 0
    records = [json.loads(line) for line in stream.read_text("utf-8").splitlines()]
    assert {record["origin"] for record in records if record["type"] == "marker"} == {origin}
    assert CliRunner().invoke(app, ["index", str(stream), "-o", str(tmp_path / "kb")]).exit_code == 0


def test_sizes_can_be_given(tmp_path: Path) -> None:
    """Other window sizes hold."""
    source, stream = tmp_path / "a.md", tmp_path / "s.jsonl"
    source.write_text(manual("Orla Brew X10"), "utf-8")
    options = ["--method", "fixed", "--chunk-tokens", "40"]
    CliRunner().invoke(app, ["chunk", str(source), *options, "-o", str(stream)])
    records = [json.loads(line) for line in stream.read_text("utf-8").splitlines()]
    assert max(record["tokens"] for record in records if record["type"] == "unit") == 40


def test_an_overlap_must_be_smaller_than_its_window(tmp_path: Path) -> None:
    """The error says which number is too large."""
    source = tmp_path / "a.md"
    source.write_text("Text.", "utf-8")
    found = subprocess.run(
        [*MRAG, "chunk", str(source), "--chunk-tokens", "50"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert found.returncode == 2
    assert "--overlap 100" in found.stderr
