import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

MRAG = (sys.executable, "-m", "mrag_cli", "validate")
_UNITS = ("The lock was rebuilt in 1902.", "Herons nest on the moor.")


def _stream(*markers: dict[str, Any], doc: str = "a") -> bytes:
    records: list[dict[str, Any]] = [
        {"type": "document", "doc": doc, "sha256": "0", "title": "Hale", "units": 2, "tokens": 20},
        {"type": "unit", "doc": doc, "unit": 1, "text": _UNITS[0], "tokens": 9},
        {"type": "unit", "doc": doc, "unit": 2, "text": _UNITS[1], "tokens": 9},
        *({"type": "marker", "doc": doc, "origin": "llm", **marker} for marker in markers),
    ]
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def _good(*pointers: int) -> dict[str, Any]:
    return {"key": "When was the lock at Hale rebuilt?", "value": _UNITS[0], "pointers": pointers}


def _validate(*arguments: str, stdin: bytes, cwd: Path) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*MRAG, *arguments], input=stdin, capture_output=True, cwd=cwd, check=False)


def _marker_records(output: bytes) -> list[dict[str, Any]]:
    return [record for record in map(json.loads, output.splitlines()) if record["type"] == "marker"]


def test_a_stream_is_repaired_in_a_pipe(tmp_path: Path) -> None:
    """The stream comes out repaired, with exit code 0; stderr names the line and sums up."""
    done = _validate(stdin=_stream(_good(1, 7)), cwd=tmp_path)
    assert done.returncode == 0
    assert [(m["origin"], m["pointers"]) for m in _marker_records(done.stdout)] == [
        ("llm", [1]),
        ("fallback", [2]),
    ]
    said = done.stderr.decode().splitlines()
    assert said[0] == "mrag: <stdin>:4: pointer 7 is out of range 1 to 2; it is dropped"
    assert said[-1].startswith(
        "mrag: 1 document, 2 markers; coverage 50.00 % before fallback, 1 fallback marker"
    )


def test_validating_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    """What validate wrote, validate leaves alone."""
    first = _validate(stdin=_stream(_good(1), _good(0)), cwd=tmp_path).stdout
    assert _validate(stdin=first, cwd=tmp_path).stdout == first


def test_an_empty_stream_is_no_error(tmp_path: Path) -> None:
    """Nothing in, nothing out."""
    done = _validate(stdin=b"", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, b"")


def test_quiet_says_nothing(tmp_path: Path) -> None:
    """With --quiet neither notices nor the summary are said."""
    assert _validate("-q", stdin=_stream(_good(1, 7)), cwd=tmp_path).stderr == b""


def test_strict_fails_and_names_the_lines(tmp_path: Path) -> None:
    """With --strict a faulty document is left out, named with its lines, and the exit code is 3."""
    fine = _stream(_good(1), {**_good(2), "key": "Where do herons nest?", "value": _UNITS[1]}, doc="b")
    done = _validate("--strict", stdin=_stream(_good(7), _good(2)) + fine, cwd=tmp_path)
    assert done.returncode == 3
    assert {record["doc"] for record in _marker_records(done.stdout)} == {"b"}
    assert b"failed: a: <stdin>:4: pointer 7 is out of range" in done.stderr


def test_malformed_input_is_refused(tmp_path: Path) -> None:
    """A line that is no JSON ends with exit code 4 and its place."""
    done = _validate(stdin=_stream(_good(1)) + b"{\n", cwd=tmp_path)
    assert done.returncode == 4
    assert b"<stdin>:5: not JSON" in done.stderr


@pytest.mark.parametrize(
    ("action", "origins"), [("repair", ["fallback", "fallback"]), ("flag", ["llm", "fallback"])]
)
def test_ungrounded_values(tmp_path: Path, action: str, origins: list[str]) -> None:
    """A year that the document does not have costs the marker its place, or gives it a flag."""
    stream = _stream({**_good(1), "value": "The lock was rebuilt in 1907."})
    markers = _marker_records(_validate("--ungrounded", action, stdin=stream, cwd=tmp_path).stdout)
    assert [marker["origin"] for marker in markers] == origins
    assert markers[0].get("flags") == (["ungrounded"] if action == "flag" else None)


def test_the_report_has_rows_and_totals(tmp_path: Path) -> None:
    """--report writes one JSON object: a row a document as they pass, the totals last."""
    stream = _stream(_good(1)) + _stream(_good(1, 2), doc="b")
    done = _validate("--report", "report.json", "-o", "out.jsonl", stdin=stream, cwd=tmp_path)
    report = json.loads((tmp_path / "report.json").read_bytes())
    assert done.stdout == b""
    assert [(row["doc"], row["coverage_percent"], row["fallbacks"]) for row in report["documents"]] == [
        ("a", 50.0, 1),
        ("b", 100.0, 0),
    ]
    totals = report["totals"]
    assert totals["coverage"]["mean_percent"] == 75.0
    assert totals["markers"]["llm"]["pointers"] == {"single": 1, "continuous": 1, "non-consecutive": 0}
    assert totals["markers"]["fallback"]["value_tokens"]["mean"] > 0
    assert len(_marker_records((tmp_path / "out.jsonl").read_bytes())) == 3


def test_the_report_of_nothing_is_whole(tmp_path: Path) -> None:
    """An empty stream gives a report without rows."""
    _validate("--report", "report.json", stdin=b"", cwd=tmp_path)
    report = json.loads((tmp_path / "report.json").read_bytes())
    assert (report["documents"], report["totals"]["documents"]) == ([], 0)


def test_tables_are_drawn_on_a_terminal(tmp_path: Path) -> None:
    """Where stderr is a terminal, the tables stand there, and the stream on stdout is untouched."""
    main, terminal = pty.openpty()
    running = subprocess.Popen(
        MRAG, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=terminal, cwd=tmp_path
    )
    os.close(terminal)
    out, _ = running.communicate(_stream(_good(1)))
    drawn = b""
    while True:
        try:
            piece = os.read(main, 4096)
        except OSError:
            break
        if not piece:
            break
        drawn += piece
    os.close(main)
    assert len(_marker_records(out)) == 2
    assert b"Coverage before fallback" in drawn
    assert b"1 document, 2 markers" in drawn
