"""The command as a user runs it: real processes, pipes, files, terminals, signals and exit codes."""

import fcntl
import json
import os
import pty
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

MRAG = [sys.executable, "-m", "mrag_cli"]
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("MRAG_")}


def _run(
    *arguments: str | Path, given: str | bytes = b"", code: int = 0
) -> subprocess.CompletedProcess[bytes]:
    given = given.encode() if isinstance(given, str) else given
    done = subprocess.run([*MRAG, *map(str, arguments)], input=given, capture_output=True, env=ENVIRONMENT)
    assert done.returncode == code, done.stderr.decode()
    assert b"Traceback" not in done.stderr
    return done


def _shell(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = line.replace("mrag ", f"{shlex.join(MRAG)} ")
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], cwd=folder, capture_output=True, text=True, env=ENVIRONMENT
    )


def _lines(*records: dict[str, Any]) -> str:
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def _document(doc: str, *units: str, key: str = "What is said?") -> list[dict[str, Any]]:
    """Return the records of a document with one marker a unit."""
    return [
        {
            "type": "document",
            "format": 1,
            "doc": doc,
            "sha256": doc,
            "title": doc,
            "units": len(units),
            "tokens": 9,
        },
        *(
            {"type": "unit", "doc": doc, "unit": number, "text": text, "tokens": 5}
            for number, text in enumerate(units, 1)
        ),
        *(
            {"type": "marker", "doc": doc, "key": key, "value": text, "pointers": [number], "origin": "llm"}
            for number, text in enumerate(units, 1)
        ),
    ]


def _on_terminal(*arguments: str | Path, size: int = 1 << 16) -> str:
    """Run the command with a terminal as its three standard streams and return what it shows."""
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [*MRAG, *map(str, arguments)], stdin=follower, stdout=follower, stderr=follower, env=ENVIRONMENT
    )
    os.close(follower)
    shown = b""
    while True:
        try:
            piece = os.read(leader, size)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        shown += piece
    process.wait()
    os.close(leader)
    return shown.decode()


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """Return a folder of three documents, one of them below another folder."""
    folder = tmp_path / "docs"
    (folder / "deep").mkdir(parents=True)
    (folder / "heron.md").write_text("# Herons\n\nGrey herons nest high in trees near water.\n", "utf-8")
    (folder / "otter.txt").write_text("An otter's holt has an entrance under water.\n", "utf-8")
    (folder / "deep" / "水獭.txt").write_text("水獭在河岸挖洞。它们吃鱼。\n", "utf-8")
    return folder


@pytest.fixture
def kb(docs: Path) -> Path:
    """Return an index of `docs`."""
    done = _shell("mrag tag docs | mrag extract | mrag validate | mrag index -o kb", docs.parent)
    assert done.returncode == 0, done.stderr
    return docs.parent / "kb"


def test_the_pipeline_runs_in_one_go_and_answers(kb: Path) -> None:
    """Documents in, an index out, and a context within the budget for questions in two languages."""
    assert b"nest high in trees" in _run("query", kb, "Where do herons nest?", "--budget", "64").stdout
    assert "水獭在河岸挖洞" in _run("query", kb, "水獭在哪里挖洞").stdout.decode()
    record = json.loads(_run("query", kb, "otter holt entrance", "--json").stdout)
    assert record["hits"][0]["doc"] == "docs/otter.txt"
    assert record["tokens"] <= record["budget"] == 640


def test_every_stage_gives_the_same_from_a_file_as_in_a_pipe(docs: Path) -> None:
    """Saved step by step the stream is, byte for byte, the one that goes through the pipes."""
    piped = _shell("mrag tag docs | mrag extract | mrag validate", docs.parent)
    saved = _shell("mrag tag docs -o 1 && mrag extract 1 -o 2 && mrag validate 2 -o 3 && cat 3", docs.parent)
    assert piped.returncode == saved.returncode == 0
    assert piped.stdout == saved.stdout != ""


@pytest.mark.parametrize("command", [["extract"], ["validate"]])
def test_a_stage_passes_an_empty_stream_on(command: list[str]) -> None:
    """Nothing in, nothing out, exit code 0."""
    assert _run(*command).stdout == b""


def test_an_empty_stream_gives_an_empty_index(tmp_path: Path) -> None:
    """An index of nothing can be queried, updated and verified."""
    kb = tmp_path / "kb"
    _run("index", "-o", kb)
    done = _run("query", kb, "anything")
    assert done.stdout == b""
    assert b"nothing found" in done.stderr
    assert json.loads(_run("query", kb, "anything", "--json").stdout)["hits"] == []
    _run("update", kb, given=_lines(*_document("a", "Swifts sleep on the wing.")))
    assert b"Swifts" in _run("query", kb, "what is said").stdout
    _run("verify", kb)


def test_streams_can_be_joined(tmp_path: Path) -> None:
    """Two streams one after the other are one stream."""
    first, second = _lines(*_document("a", "One.")), _lines(*_document("b", "Two."))
    _run("index", "-o", tmp_path / "kb", given=first + second)
    assert json.loads(_run("info", tmp_path / "kb", "--json").stdout)["documents"] == 2


def test_records_of_unknown_types_stay_where_they_are() -> None:
    """A stage passes records and fields that it does not know through in place."""
    records = _document("a", "Terns hover before they dive.")
    records[1]["mine"] = {"kept": [1, 2]}
    strange = {"type": "note", "text": "mine"}
    given = _lines(strange, records[0], strange, *records[1:], strange)
    out = [json.loads(line) for line in _run("validate", given=given).stdout.splitlines()]
    assert [record["type"] for record in out] == ["note", "document", "note", "unit", "marker", "note"]
    assert out[3]["mine"] == {"kept": [1, 2]}


def test_the_same_document_twice_is_left_out_and_another_of_its_name_is_an_error() -> None:
    """Equal records are said and skipped; different ones end the run, naming both lines."""
    once = _lines(*_document("a", "One."))
    done = _run("extract", given=once + once)
    assert done.stdout.count(b'"document"') == 1
    assert b"left out" in done.stderr
    done = _run("extract", given=once + _lines(*_document("a", "Other.")), code=4)
    assert b"<stdin>:4: " in done.stderr
    assert b"line 1" in done.stderr


@pytest.mark.parametrize(
    ("given", "line", "said"),
    [
        ("{", 1, "not JSON"),
        ("[1]\n", 1, "JSON object"),
        ('{"doc":"a"}\n', 1, '"type" is missing'),
        ('{"type":"document"}\n', 1, '"doc" is missing'),
        ('{"type":"document","doc":"\\ud800"}\n', 1, "surrogate"),
        ('{"type":"document","doc":"a","units":"3"}\n', 1, '"units" is "3"'),
        ('{"type":"unit","doc":"a","unit":1,"text":"x"}\n', 1, "before any document"),
        (_lines(*_document("a", "One."))[:-1] + "x\n", 3, "not JSON"),
        (_lines(*_document("a", "One.", "Two.")[:2]), 1, "announces 2 units"),
        (_lines(*_document("a", "One.")[:2], _document("b", "Two.")[2]), 3, "stand together"),
        (_lines(*_document("a", "One.")[:2], {**_document("a", "One.")[2], "pointers": [2]}), 3, "pointer 2"),
        (_lines(*_document("a", "One.")[:2], {**_document("a", "One.")[2], "pointers": []}), 3, "no unit"),
        (b"\xff\xfe{\x00", 1, "UTF-16"),
    ],
)
def test_malformed_input_is_named_with_its_line(
    given: str | bytes, line: int, said: str, tmp_path: Path
) -> None:
    """Malformed input exits with 4 and says path, line, what is wrong and what to do; no index is made."""
    done = _run("index", "-o", tmp_path / "kb", given=given, code=4)
    assert f"<stdin>:{line}: " in done.stderr.decode()
    assert said in done.stderr.decode()
    stream = tmp_path / "broken.jsonl"
    stream.write_bytes(given.encode() if isinstance(given, str) else given)
    assert f"{stream}:{line}: " in _run("update", _built(tmp_path / "other"), stream, code=4).stderr.decode()
    _run("query", tmp_path / "kb", "x", code=10)


def _built(directory: Path) -> Path:
    _run("index", "-o", directory, given=_lines(*_document("a", "One.")))
    return directory


def test_a_byte_order_mark_and_a_line_separator_are_no_obstacle() -> None:
    """A BOM is accepted, U+2028 does not end a line, and CRLF does."""
    given = "\ufeff" + _lines(*_document("a", "One\u2028two.")).replace("\n", "\r\n")
    out = _run("validate", given=given).stdout.decode()
    assert "One\u2028two." in out
    assert "\ufeff" not in out


def test_output_is_whole_or_not_there(tmp_path: Path) -> None:
    """A stage that fails leaves the file of an earlier run as it was, and no other file."""
    out = tmp_path / "out.jsonl"
    out.write_text("earlier", "utf-8")
    _run("extract", "-o", out, given=_lines(*_document("a", "One.")) + "{", code=4)
    assert out.read_text("utf-8") == "earlier"
    assert [path.name for path in tmp_path.iterdir()] == ["out.jsonl"]


def test_what_went_before_a_malformed_line_is_written() -> None:
    """In a pipe, the documents before a broken line have gone out already."""
    done = _run("extract", given=_lines(*_document("a", "One."), *_document("b", "Two.")) + "{", code=4)
    assert [json.loads(line)["doc"] for line in done.stdout.splitlines() if b'"document"' in line] == ["a"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["tag", "/nowhere/at/all"],
        ["extract", "/nowhere.jsonl"],
        ["query", "kb", "x", "--retriever", "psychic"],
        ["query", "kb", "x", "--budget", "-1"],
        ["query", "kb", "x", "--where", "year"],
        ["index"],
    ],
)
def test_a_command_line_that_makes_no_sense_exits_with_2(arguments: Sequence[str]) -> None:
    """Usage errors say what is expected."""
    assert _run(*arguments, code=2).stderr


def test_an_index_that_is_there_is_not_overwritten_by_accident(kb: Path) -> None:
    """`index` refuses a directory with an index or with other things; --overwrite replaces an index."""
    records = _lines(*_document("new", "Entirely new."))
    done = _run("index", "-o", kb, given=records, code=2)
    assert b"mrag update" in done.stderr
    assert b"herons" in _run("query", kb, "herons").stdout.lower()
    _run("index", "-o", kb, "--overwrite", given=records)
    assert b"Entirely new." in _run("query", kb, "what is said").stdout
    assert b"holds other things" in _run("index", "-o", kb.parent, given=records, code=2).stderr


def test_codes_of_an_index_that_cannot_be_used(kb: Path, tmp_path: Path) -> None:
    """No index is 10, a locked one 11, a newer format 12, a damaged file 13."""
    for command in (
        ["query", tmp_path / "none", "x"],
        ["info", tmp_path / "none"],
        ["verify", tmp_path / "none"],
    ):
        assert b"mrag index" in _run(*command, code=10).stderr
    assert _run("update", tmp_path / "none", code=10).stderr
    with (kb / "lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert b"--wait" in _run("update", kb, given=_lines(*_document("z", "New.")), code=11).stderr
        assert _run("query", kb, "herons").stdout
    written = (kb / "manifest.json").read_bytes()
    manifest = json.loads(written)
    for change, code in (({"format": 99}, 12), ({"generation": "x"}, 13)):
        (kb / "manifest.json").write_text(json.dumps({**manifest, **change}), "utf-8")
        assert b"manifest.json" in _run("query", kb, "herons", code=code).stderr
    (kb / "manifest.json").write_bytes(written)
    damaged = next(path for path in (kb / "segments").rglob("*.jsonl") if path.stat().st_size)
    with damaged.open("ab") as file:
        file.write(b"x")
    for command in (["query", kb, "herons"], ["verify", kb]):
        done = _run(*command, code=13)
        assert damaged.name.encode() in done.stderr + done.stdout


def test_documents_that_fail_are_listed_and_cost_no_other(docs: Path) -> None:
    """A file that cannot be decoded is named, exits with 3, and the others are tagged."""
    (docs / "broken.txt").write_bytes(bytes(range(128, 256)) * 3 + b"\x81\x8d\x8f\x90\x9d" * 40)
    (docs / "loop").symlink_to("loop")
    done = _run("tag", docs, code=3)
    assert b"failed" in done.stderr
    names = [json.loads(line)["doc"] for line in done.stdout.splitlines() if b'"document"' in line]
    assert "docs/heron.md" in names


def test_an_edit_a_deletion_and_a_new_file_reach_the_index(docs: Path, kb: Path) -> None:
    """`--changed-since` sends what changed; the update replaces, deletes, adds and leaves the rest alone."""
    (docs / "heron.md").write_text("# Herons\n\nHerons now nest on pylons.\n", "utf-8")
    (docs / "otter.txt").unlink()
    (docs / "swift.txt").write_text("Swifts sleep on the wing.\n", "utf-8")
    line = "mrag tag docs --changed-since kb | mrag extract | mrag validate | mrag update kb"
    done = _shell(line, docs.parent)
    assert done.returncode == 0, done.stderr
    assert "1 added, 1 replaced, 1 deleted" in done.stderr
    assert b"pylons" in _run("query", kb, "where do herons nest").stdout
    assert _run("query", kb, "otter holt").stdout == b""
    before = {path: path.stat().st_mtime_ns for path in kb.rglob("*")}
    done = _shell(line, docs.parent)
    assert "nothing to change" in done.stderr
    assert {path: path.stat().st_mtime_ns for path in kb.rglob("*")} == before


def test_a_closed_pipe_ends_the_command_quietly(docs: Path) -> None:
    """When the reader goes away the command ends with 141 and says nothing."""
    (docs / "long.txt").write_text("One more sentence stands here. " * 60_000, "utf-8")
    done = _shell("mrag tag docs/long.txt | head -c 10; exit ${PIPESTATUS[0]}", docs.parent)
    assert done.returncode == 141
    assert done.stderr == ""


def test_an_interrupt_ends_the_command_with_130(tmp_path: Path) -> None:
    """Ctrl-C ends with 130, without a traceback, and leaves no half index."""
    process = subprocess.Popen(
        [*MRAG, "index", "-o", str(tmp_path / "kb")],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
    )
    assert process.stdin is not None
    process.stdin.write(_lines(*_document("a", "One."), *_document("b", "Two.")).encode())
    process.stdin.flush()
    deadline = time.monotonic() + 20
    while not (tmp_path / "kb" / "segments").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=20)
    assert process.returncode == 130
    assert b"Traceback" not in said
    _run("query", tmp_path / "kb", "x", code=10)
    _run("index", "-o", tmp_path / "kb", given=_lines(*_document("a", "One.")))


def test_text_of_documents_is_never_interpreted(tmp_path: Path) -> None:
    """Markup, escapes and emoji codes in a document are shown as the characters they are."""
    nasty = "Keys [red]stay[/] :warning: \x1b[31mred\x1b[0m \x07 [/nope] end."
    _run("index", "-o", tmp_path / "kb", given=_lines(*_document("\x1b[2Jdoc", nasty, key="nasty keys")))
    piped = _run("query", tmp_path / "kb", "nasty").stdout.decode()
    assert piped == nasty + "\n"
    shown = _on_terminal("query", tmp_path / "kb", "nasty", "--explain")
    assert "[red]stay[/] :warning:" in shown
    assert "\\x1b[31mred" in shown
    assert "\x1b[2J" not in shown
    assert "\x1b[31m" not in shown
    assert "\x07" not in shown


def test_on_a_terminal_a_stage_without_input_says_how_it_is_used(tmp_path: Path) -> None:
    """With a terminal and no file a stage prints its usage instead of waiting."""
    for command in (["extract"], ["validate"], ["index", "-o", tmp_path / "kb"]):
        shown = _on_terminal(*command)
        assert "Usage: mrag" in shown or "Usage: python -m mrag_cli" in shown
        assert "pipe" in shown


def test_quiet_silences_notices_but_not_errors(tmp_path: Path) -> None:
    """`--quiet` leaves stderr empty where all is well, and errors in place."""
    done = _run("index", "-q", "-o", tmp_path / "kb", given=_lines(*_document("a", "One.")))
    assert done.stderr == b""
    assert _run("validate", "-q", given="{", code=4).stderr


def test_debug_shows_where_an_error_came_from() -> None:
    """A traceback comes with `--debug` only."""
    command = [*MRAG, "--debug", "validate"]
    done = subprocess.run(command, input=b"{", capture_output=True, env=ENVIRONMENT)
    assert done.returncode == 4
    assert b"Traceback" in done.stderr


def test_filters_and_batches(kb: Path) -> None:
    """--doc narrows the documents; --batch answers line by line, in order, keeping ids."""
    assert _run("query", kb, "water", "--doc", "*/heron.md").stdout.decode().count("water") == 1
    given = _lines({"id": 7, "question": "herons"}, {"_id": "x", "input": "otter"}, {"question": "zebra"})
    found = [json.loads(line) for line in _run("query", kb, "--batch", "-", given=given).stdout.splitlines()]
    assert [record["question"] for record in found] == ["herons", "otter", "zebra"]
    assert (found[0]["id"], found[1]["_id"]) == (7, "x")
    assert found[2]["hits"] == []


def test_the_units_own_words_can_be_packed(kb: Path) -> None:
    """--source gives the source text in place of the values; a budget of nothing gives nothing."""
    assert b"# Herons" in _run("query", kb, "herons", "--source").stdout
    assert _run("query", kb, "herons", "--budget", "0").stdout == b""


def test_a_damaged_index_can_be_overwritten_and_stays_until_then(kb: Path) -> None:
    """--overwrite replaces an index that cannot be read; a build that fails removes nothing of it."""
    (kb / "manifest.json").write_text("damaged", "utf-8")
    records = _lines(*_document("new", "Entirely new."))
    _run("index", "-o", kb, given=records, code=13)
    before = sorted(path.name for path in (kb / "segments" / "1").iterdir())
    _run("index", "-o", kb, "--overwrite", given="{", code=4)
    assert sorted(path.name for path in (kb / "segments" / "1").iterdir()) == before
    _run("index", "-o", kb, "--overwrite", given=records)
    assert b"Entirely new." in _run("query", kb, "what is said").stdout
    assert [path.name for path in (kb / "segments").iterdir()] == ["2"]
    _run("verify", kb)
