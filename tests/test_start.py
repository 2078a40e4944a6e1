"""What the command imports before it does anything, and that an installed wheel is whole."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from mrag_cli.parts.llm.prompt import shipped

HEAVY = {"litellm", "hnswlib", "bm25s", "tiktoken", "numpy", "rich", "trafilatura", "pydantic", "openai"}
ROOT = Path(__file__).parent.parent
_LIST_MODULES = """
import sys
sys.argv = ["mrag", *{arguments!r}]
from mrag_cli.cli.main import app
try:
    app()
except SystemExit as end:
    assert not end.code, end.code
print("\\nMODULES", *(name for name in {heavy!r} if name in sys.modules))
"""

_READ_PROMPT = """
import mrag_cli
from mrag_cli.parts.llm.prompt import shipped
print(mrag_cli.__file__)
print(shipped("extract_a.v1").text)
"""
_STREAM = """\
{"type":"document","doc":"a","sha256":"","title":"a","units":1,"tokens":3}
{"type":"unit","doc":"a","unit":1,"text":"Grey herons nest high.","tokens":5}
{"type":"marker","doc":"a","key":"Where do herons nest?","value":"High.","pointers":[1],"origin":"llm"}
"""


def _imported(*arguments: str) -> set[str]:
    code = _LIST_MODULES.format(arguments=arguments, heavy=sorted(HEAVY))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.rpartition("MODULES")[2].split())


@pytest.mark.parametrize(
    "arguments", [("--help",), ("--version",), ("query", "--help"), ("extract", "--help"), ("tag", "--help")]
)
def test_help_loads_no_heavy_library(arguments: tuple[str, ...]) -> None:
    """`--help` and `--version` import none of the heavy libraries, nor numpy."""
    assert _imported(*arguments) == set()


def test_a_lexical_query_loads_numpy_alone(tmp_path: Path) -> None:
    """A one-shot BM25 query whose output is a pipe imports neither litellm, tiktoken, hnswlib nor bm25s."""
    stream = tmp_path / "stream.jsonl"
    stream.write_text(_STREAM, "utf-8")
    index = [sys.executable, "-m", "mrag_cli", "index", str(stream), "-o", str(tmp_path / "kb")]
    subprocess.run(index, check=True, capture_output=True)
    assert _imported("query", str(tmp_path / "kb"), "herons") == {"numpy"}


def test_a_wheel_runs_outside_the_checkout(tmp_path: Path) -> None:
    """A wheel holds the type marker and the prompts, and its command runs where no checkout is."""
    build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(tmp_path), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("mrag_cli-*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert "mrag_cli/py.typed" in names
    for path in (ROOT / "mrag_cli").rglob("*.txt"):
        assert path.relative_to(ROOT).as_posix() in names
    assert not any(name.startswith(("tests/", "sample_corpus/")) for name in names)

    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    done = subprocess.run(
        [sys.executable, "-P", "-c", _READ_PROMPT],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(site)},
    )
    place, _, prompt = done.stdout.partition("\n")
    assert place.startswith(str(site))
    assert prompt.strip() == shipped("extract_a.v1").text.strip()
