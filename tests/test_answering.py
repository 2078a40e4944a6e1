"""`mrag query --answer` as a user runs it, against a real server on loopback."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest
from loopback import Answer, Asked, serving

RECORDS = [
    {"type": "document", "doc": "museum", "sha256": "", "title": "Museum", "units": 2, "tokens": 20},
    {"type": "unit", "doc": "museum", "unit": 1, "text": "The museum opens at nine.", "tokens": 6},
    {"type": "unit", "doc": "museum", "unit": 2, "text": "Admission to the museum is free.", "tokens": 7},
    {
        "type": "marker",
        "doc": "museum",
        "key": "When does the museum open?",
        "value": "The museum opens at nine.",
        "pointers": [1],
        "origin": "llm",
    },
    {
        "type": "marker",
        "doc": "museum",
        "key": "What does the museum cost?",
        "value": "Admission to the museum is free.",
        "pointers": [2],
        "origin": "llm",
    },
]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an index of two markers."""
    folder = tmp_path_factory.mktemp("answering")
    stream = folder / "stream.jsonl"
    stream.write_text("".join(json.dumps(record) + "\n" for record in RECORDS), "utf-8")
    command = [sys.executable, "-m", "mrag_cli", "index", str(stream), "-o", str(folder / "kb")]
    subprocess.run(command, check=True, capture_output=True)
    return folder / "kb"


def _run(
    index: Path,
    script: Callable[[Asked], Answer],
    *options: str,
    given: str | None = None,
    cache: str | None = None,
) -> tuple[subprocess.CompletedProcess[str], int]:
    with serving(script) as server:
        command = [sys.executable, "-m", "mrag_cli", "query", str(index), *options, "--answer"]
        command += ["--model", "openai/loopback", "--api-base", server.url, "--max-attempts", "1"]
        # a model is known by its name, so a cache that tests shared would answer for another one's server
        command += ["--cache", str(index.parent / (cache or uuid4().hex))]
        environment = {"PATH": "/usr/bin:/bin", "OPENAI_API_KEY": "sk-loopback"}
        done = subprocess.run(command, input=given, capture_output=True, text=True, env=environment)
        return done, len(server.asked)


def _cite_first(asked: Asked) -> Answer:
    passage = asked.prompt.split("[1] ")[1].split("\n")[0]
    return Answer(f"{passage.rstrip('.')} [1].")


def test_an_answer_is_followed_by_its_sources(index: Path) -> None:
    """In a pipe the answer comes first, then each cited source with its document and unit."""
    question = "When does the museum open?"
    done, calls = _run(index, _cite_first, question, cache="once")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "The museum opens at nine [1].\n\nSources:\n[1] museum, unit 1\n"
    assert calls == 1
    assert "1 calls" in done.stderr
    assert "sk-loopback" not in done.stdout + done.stderr

    again, calls = _run(index, _cite_first, question, "--json", cache="once")
    assert calls == 0
    record = json.loads(again.stdout)
    assert record["answer"] == "The museum opens at nine [1]."
    assert record["citations"] == [{"number": 1, "doc": "museum", "rank": 1}]
    assert record["usage"]["prompt_tokens"] > 0
    assert record["context"].startswith("The museum opens at nine.")


def test_a_batch_is_answered_in_order_and_a_failure_costs_only_itself(index: Path) -> None:
    """Each line of a batch gets one line, in order; a question whose call fails has an error, exit code 3."""

    def script(asked: Asked) -> Answer:
        if "fail" in asked.prompt:
            return Answer("the server broke", status=500)
        return _cite_first(asked)

    lines = ["When does the museum open?", "Does the museum fail?", "What does the museum cost?"]
    given = "".join(json.dumps({"id": number, "question": line}) + "\n" for number, line in enumerate(lines))
    done, _ = _run(index, script, "--batch", "-", given=given)
    assert done.returncode == 3, done.stderr
    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert [record["id"] for record in records] == [0, 1, 2]
    assert records[0]["answer"] == "The museum opens at nine [1]."
    assert records[1]["answer"] is None
    assert records[1]["error"]
    assert records[2]["answer"] == "Admission to the museum is free [1]."


def test_nothing_found_asks_no_model(index: Path) -> None:
    """A question that finds nothing is answered honestly, without a call."""
    done, calls = _run(index, _cite_first, "zebra")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "The evidence does not say."
    assert calls == 0


def test_an_answer_without_citations_is_pointed_out(index: Path) -> None:
    """Statements that cite nothing, and citations of passages that are not there, are said on stderr."""
    done, _ = _run(index, lambda _: Answer("It opens at ten. See [9]."), "When does the museum open?")
    assert done.returncode == 0
    assert "cites passages that are not there: 9" in done.stderr
    assert "cite nothing" in done.stderr


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--max-calls", "0"], 21, "--max-calls"),
        ([], 20, "key"),
    ],
)
def test_limits_and_wrong_keys_end_the_run(index: Path, options: list[str], code: int, said: str) -> None:
    """A limit that is reached exits with 21, a key that the provider refuses with 20."""
    refused = Answer("Incorrect API key provided", status=401, code="invalid_api_key")
    done, _ = _run(index, lambda _: refused, "When does the museum open?", *options)
    assert done.returncode == code, done.stderr
    assert said in done.stderr


def test_answering_needs_a_model(index: Path) -> None:
    """`--answer` without a model is a usage error that names the option."""
    command = [sys.executable, "-m", "mrag_cli", "query", str(index), "x", "--answer"]
    done = subprocess.run(command, capture_output=True, text=True, env={"PATH": "/usr/bin:/bin"})
    assert done.returncode == 2
    assert "--model" in done.stderr
