"""The command against a real server on loopback.

In processes of its own where signals and pipes are at stake, in this process where only options are.
"""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from loopback import Answer, Asked, Server, faithful, serving
from typer.testing import CliRunner

from mrag_cli.cli.main import app

MRAG = [sys.executable, "-m", "mrag_cli"]


def stream(path: Path, documents: int = 3, units: int = 4) -> Path:
    """Write a stream of tagged documents."""
    lines = []
    for number in range(documents):
        doc = f"d{number}"
        lines.append(
            {"type": "document", "format": 1, "doc": doc, "title": doc, "units": units, "tokens": 12 * units}
        )
        for unit in range(1, units + 1):
            text = f"Pump {unit} of plant {number} was built in {1900 + unit}."
            lines.append({"type": "unit", "doc": doc, "unit": unit, "text": text, "tokens": 12})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return path


def arguments(source: Path, server: Server | None, *more: str, model: str = "openai/loopback") -> list[str]:
    """Return the command line; the cache stands beside the source."""
    base = ["--api-base", server.url] if server is not None else []
    return [
        *MRAG,
        "extract",
        str(source),
        "--model",
        model,
        *base,
        "--cache",
        str(source.parent / "cache"),
        *more,
    ]


@dataclass
class Done:
    """How a command ended."""

    returncode: int
    stdout: bytes
    stderr: bytes


def run(command: list[str], stdin: bytes | None = None) -> Done:
    """Run a command to its end in this process."""
    environment = {"MRAG_MODEL": None, "MRAG_CACHE": None, "OPENAI_API_KEY": None}
    done = CliRunner().invoke(app, command[len(MRAG) :], input=stdin, env=environment)
    return Done(done.exit_code, done.stdout_bytes, done.stderr_bytes)


def process(command: list[str], **environment: str) -> Done:
    """Run a command to its end in a process of its own."""
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith(("MRAG_", "OPENAI_"))
    }
    done = subprocess.run(
        command, capture_output=True, check=False, timeout=120, env={**inherited, **environment}
    )
    return Done(done.returncode, done.stdout, done.stderr)


def markers(output: bytes) -> list[dict[str, Any]]:
    """Return the markers of a stream."""
    records = [json.loads(line) for line in output.splitlines()]
    return [record for record in records if record["type"] == "marker"]


def test_units_in_markers_out_and_the_summary_on_stderr(tmp_path: Path) -> None:
    """Stdout is the stream alone; stderr has estimate and actual; the report has them as JSON."""
    with serving() as server:
        done = process(arguments(stream(tmp_path / "u"), server, "--report", str(tmp_path / "r.json")))
    assert done.returncode == 0, done.stderr
    assert len(markers(done.stdout)) == 12
    assert b"3 documents, 12 markers; 3 calls" in done.stderr
    assert b"an unknown price" in done.stderr
    report = json.loads((tmp_path / "r.json").read_bytes())
    assert report["actual"]["calls"] == report["estimate"]["calls"] == 3
    assert report["actual"]["cost"] is None
    assert report["failures"] == []


def test_a_pipe_and_a_file_work_the_same(tmp_path: Path) -> None:
    """Standard input and -o give the same bytes as a file and standard output."""
    source = stream(tmp_path / "u")
    with serving() as server:
        plain = run(arguments(source, server))
        command = arguments(source, server, "-o", str(tmp_path / "out"))
        command[command.index(str(source))] = "-"
        run(command, stdin=source.read_bytes())
    assert (tmp_path / "out").read_bytes() == plain.stdout
    assert len(server.asked) == 3


def test_an_empty_stream_is_an_empty_stream(tmp_path: Path) -> None:
    """Nothing in, nothing out, no call."""
    (tmp_path / "u").write_bytes(b"")
    with serving() as server:
        done = run(arguments(tmp_path / "u", server))
    assert (done.returncode, done.stdout, server.asked) == (0, b"", [])


@pytest.mark.parametrize("moment", [1, 5])
def test_a_killed_run_pays_for_nothing_twice(tmp_path: Path, moment: int) -> None:
    """After kill -9 a rerun gives the same bytes and makes only the calls that had not returned."""
    source = stream(tmp_path / "u", documents=8)
    with serving() as server:
        whole = run(arguments(source, server, "--cache", str(tmp_path / "other"))).stdout
    asked_before_kill: list[str] = []
    killed = False

    def script(asked: Asked) -> Answer:
        if not killed:
            asked_before_kill.append(asked.prompt)
        late = asked.number >= moment and not killed
        return Answer(faithful(asked).text, delay=60.0 if late else 0.0)

    with serving(script) as server:
        with subprocess.Popen(
            arguments(source, server, "--concurrency", "2"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as victim:
            deadline = time.monotonic() + 30
            while len(server.asked) < moment + 2 and time.monotonic() < deadline:
                time.sleep(0.01)
            time.sleep(0.1)
            os.kill(victim.pid, signal.SIGKILL)
        killed = True
        before = len(server.asked)
        again = run(arguments(source, server, "--concurrency", "2"))
        after = server.asked[before:]
    assert again.returncode == 0, again.stderr
    assert again.stdout == whole
    assert before == moment + 2
    assert len(after) == 8 - moment
    returned = set(asked_before_kill[:moment])
    assert not returned & {asked.prompt for asked in after}


def test_an_interrupt_ends_with_130_and_keeps_what_returned(tmp_path: Path) -> None:
    """Ctrl-C ends at once, without a traceback; the rerun asks for the rest alone."""
    source = stream(tmp_path / "u")
    slow = True

    def script(asked: Asked) -> Answer:
        return Answer(faithful(asked).text, delay=60.0 if slow and asked.number else 0.0)

    with serving(script) as server:
        with subprocess.Popen(
            arguments(source, server, "--concurrency", "1"), stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as victim:
            deadline = time.monotonic() + 30
            while len(server.asked) < 2 and time.monotonic() < deadline:
                time.sleep(0.01)
            time.sleep(0.1)
            victim.send_signal(signal.SIGINT)
            start = time.monotonic()
            _, stderr = victim.communicate(timeout=20)
        assert victim.returncode == 130, stderr
        assert time.monotonic() - start < 5
        assert b"Traceback" not in stderr
        slow = False
        again = run(arguments(source, server))
    assert again.returncode == 0
    assert len(server.asked) == 2 + 2


def test_a_reader_that_leaves_ends_the_run_with_141(tmp_path: Path) -> None:
    """A closed pipe is no traceback."""
    source = stream(tmp_path / "u", documents=400, units=12)
    with (
        serving() as server,
        subprocess.Popen(
            arguments(source, server, "-q"), stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as left,
    ):
        assert left.stdout is not None
        assert left.stderr is not None
        left.stdout.readline()
        left.stdout.close()
        assert left.stderr.read() == b""
        assert left.wait(30) == 141


def test_one_failed_document_is_listed_and_exits_3(tmp_path: Path) -> None:
    """The rest is written, the failure is named on stderr and in the report."""

    def script(asked: Asked) -> Answer:
        return Answer("oops", status=500) if "Title: d1" in asked.prompt else faithful(asked)

    with serving(script) as server:
        more = ("--max-attempts", "1", "--report", str(tmp_path / "r.json"))
        done = run(arguments(stream(tmp_path / "u"), server, *more))
    assert done.returncode == 3
    assert len(markers(done.stdout)) == 8
    assert done.stdout.count(b'"type":"document"') == 3
    assert b"failed: d1: HTTP 500" in done.stderr
    assert json.loads((tmp_path / "r.json").read_bytes())["failures"][0]["doc"] == "d1"


def test_a_wrong_key_exits_20_at_once_and_is_not_shown(tmp_path: Path) -> None:
    """A hundred documents make no more calls than run at once."""
    secret = "sk-this-is-secret-0123456789"  # noqa: S105 - it opens nothing
    source = stream(tmp_path / "u", documents=100)
    with serving(lambda _: Answer(f"Incorrect API key provided: {secret}", status=401)) as server:
        command = arguments(source, server, "--report", str(tmp_path / "r.json"))
        done = process(command, OPENAI_API_KEY=secret)
        assert server.asked[0].headers["authorization"].endswith(secret)
        assert len(server.asked) <= 8
    assert done.returncode == 20
    assert b"check the model's name" in done.stderr
    written = [path.read_bytes() for path in tmp_path.iterdir()]
    assert all(secret.encode() not in text for text in (done.stdout, done.stderr, *written))


def test_limits_exit_21_and_a_rerun_with_more_resumes(tmp_path: Path) -> None:
    """--max-calls and --max-cost stop before the call that would pass them."""
    source = stream(tmp_path / "u", documents=5)
    with serving() as server:
        first = run(arguments(source, server, "--max-calls", "2", "--concurrency", "1"))
        assert first.returncode == 21, first.stderr
        assert len(server.asked) == 2
        assert len(markers(first.stdout)) == 8
        second = run(arguments(source, server))
        assert second.returncode == 0
        assert len(markers(second.stdout)) == 20
        assert len(server.asked) == 5
        priced = run(arguments(source, server, "--max-cost", "0.000001", model="openai/gpt-4o-mini"))
        assert priced.returncode == 21
        assert b"--max-cost 1e-06" in priced.stderr
        assert len(server.asked) == 5
        unknown = run(arguments(source, server, "--max-cost", "1"))
        assert unknown.returncode == 2
        assert b"use --max-calls" in unknown.stderr


def test_the_cost_of_a_run_stays_under_the_limit_at_any_concurrency(tmp_path: Path) -> None:
    """What concurrent calls cost together does not pass --max-cost."""
    source = stream(tmp_path / "u", documents=12)
    with serving() as server:
        command = arguments(source, server, "--report", str(tmp_path / "r"), model="openai/gpt-4o-mini")
        done = run([*command, "--max-cost", "0.0015", "--concurrency", "12"])
    report = json.loads((tmp_path / "r").read_bytes())
    assert done.returncode == 21, done.stderr
    assert 0 < report["actual"]["cost"] <= 0.0015
    assert 1 < len(server.asked) < 12


def test_a_dry_run_prints_calls_tokens_cost_and_what_is_held(tmp_path: Path) -> None:
    """A table or JSON; no call, and no server or key is needed."""
    source = stream(tmp_path / "u")
    with serving() as server:
        run(arguments(source, server, "--max-calls", "1", "--concurrency", "1", model="openai/gpt-4o-mini"))
    done = run(arguments(source, None, "--dry-run", "--json", model="openai/gpt-4o-mini"))
    found = json.loads(done.stdout)
    assert (found["documents"], found["windows"], found["cached_windows"]) == (3, 3, 1)
    assert found["estimate"]["calls"] == 2
    assert 0 < found["estimate"]["cost"] < 0.01
    table = run(arguments(source, None, "--dry-run", model="openai/gpt-4o-mini")).stdout.decode()
    assert "cached already" in table
    assert "$0.00" in table
    unknown = run(arguments(source, None, "--dry-run", model="openai/loopback")).stdout.decode()
    assert "an unknown price" in unknown


def test_options_reach_the_request(tmp_path: Path) -> None:
    """Prompt, language, keys, examples, variant, schema and parameters arrive at the server."""
    source = stream(tmp_path / "u", documents=1)
    example = {
        "retrieval_key": "Example key?",
        "info_value": "Example value of a bridge.",
        "paragraph_idx": "[1]",
    }
    (tmp_path / "shots.jsonl").write_text(json.dumps(example))
    (tmp_path / "own.txt").write_text(
        "My own prompt. {{document}}\n{{window}}units and no others: {{units}}."
    )
    with serving() as server:
        for more in (
            [
                "--language",
                "French",
                "--keys",
                "3",
                "--examples",
                str(tmp_path / "shots.jsonl"),
                "--variant",
                "c",
            ],
            [
                "--prompt",
                str(tmp_path / "own.txt"),
                "--param",
                "top_p=0.5",
                "--param",
                "user=me",
                "--schema",
                "on",
            ],
        ):
            done = run(arguments(source, server, *more))
            assert done.returncode == 0, done.stderr
    first, second = (asked.body for asked in server.asked)
    system = first["messages"][0]["content"]
    assert "in French" in system
    assert "2 further keys" in system
    assert "Example value of a bridge." in system
    assert system.index("## Requirements") < system.index("## Keys")
    assert second["messages"][0]["content"] == "My own prompt."
    assert (second["top_p"], second["user"]) == (0.5, "me")
    assert second["response_format"]["type"] == "json_schema"


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["--param", "api_key=x"], "environment"),
        (["--param", "top_p"], "NAME=VALUE"),
        (["--examples", "/nowhere"], "/nowhere"),
        (["--prompt", "/nowhere"], "/nowhere"),
        (["--api-base", "localhost:8080"], "http://"),
        (["--api-base", "http://[bad"], "http://HOST"),
        (["--api-base", "http:///v1"], "http://HOST"),
        (["--api-base", "http://127.0.0.1:99999/v1"], "http://HOST"),
        (["--context-tokens", "400"], "--context-tokens"),
    ],
)
def test_options_that_make_no_sense_exit_2(tmp_path: Path, more: list[str], told: str) -> None:
    """The message names the option and what is expected."""
    done = run(arguments(stream(tmp_path / "u"), None, *more))
    assert done.returncode == 2, done.stderr
    assert told in done.stderr.decode()


def test_options_of_a_model_need_one(tmp_path: Path) -> None:
    """Without --model nothing is estimated or limited."""
    done = run([*MRAG, "extract", str(stream(tmp_path / "u")), "--dry-run"])
    assert done.returncode == 2
    assert b"--dry-run needs --model" in done.stderr


def test_without_a_model_the_rules_extract(tmp_path: Path) -> None:
    """Offline, with no cache and no call."""
    done = run([*MRAG, "extract", str(stream(tmp_path / "u"))])
    assert done.returncode == 0, done.stderr
    found = markers(done.stdout)
    assert {record["origin"] for record in found} == {"extractive"}
    assert {record["doc"] for record in found} == {"d0", "d1", "d2"}
    assert list(tmp_path.iterdir()) == [tmp_path / "u"]


def test_a_malformed_stream_exits_4_with_its_line(tmp_path: Path) -> None:
    """The line is named before anything is paid for what follows."""
    source = stream(tmp_path / "u", documents=1)
    source.write_text(source.read_text() + "no json\n")
    with serving() as server:
        done = run(arguments(source, server))
    assert done.returncode == 4
    assert b"u:6: not JSON" in done.stderr
