import json
import os
import pty
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

MRAG = (sys.executable, "-m", "mrag_cli")


def _mrag(*arguments: str, cwd: Path, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*MRAG, *arguments], cwd=cwd, input=stdin, capture_output=True, check=False)


def _records(output: bytes) -> list[dict[str, object]]:
    return [json.loads(line) for line in output.splitlines()]


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """Return a folder ``docs`` of two documents."""
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "a.md").write_text("# Pump\n\nIt moves forty litres.\n\n## Stop\n\nPress the button.\n")
    (folder / "b.txt").write_text("The lock was built by hand.\n")
    return folder


def test_a_folder_becomes_a_stream(docs: Path) -> None:
    """The documents of a folder come out as records, and nothing else does."""
    result = _mrag("tag", "docs", cwd=docs.parent)
    assert (result.returncode, result.stderr) == (0, b"")
    records = _records(result.stdout)
    assert [(record["type"], record["doc"]) for record in records] == [
        ("document", "docs/a.md"),
        ("unit", "docs/a.md"),
        ("unit", "docs/a.md"),
        ("document", "docs/b.txt"),
        ("unit", "docs/b.txt"),
    ]
    assert records[2]["heading"] == ["Pump", "Stop"]


def test_options(docs: Path) -> None:
    """Unit length, mode, root name and output file are what the options say."""
    result = _mrag(
        "tag",
        "docs/b.txt",
        "--units",
        "fixed",
        "--unit-tokens",
        "3",
        "--as",
        "lock",
        "-o",
        "s.jsonl",
        cwd=docs.parent,
    )
    assert (result.returncode, result.stdout) == (0, b"")
    records = _records((docs.parent / "s.jsonl").read_bytes())
    assert [record["tokens"] for record in records[1:]] == [3, 3, 1]
    assert {record["doc"] for record in records} == {"lock"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], b"nowhere does not exist"),
        (["docs/a.md", "more/a.md"], b"docs/a.md and more/a.md would both be document 'a.md'"),
        (["docs", "--as", " "], b"--as"),
        (["docs", "--as", "\udcff"], b"--as"),
        (["docs", "--unit-tokens", "0"], b"--unit-tokens"),
        (["docs", "--units", "words"], b"--units"),
    ],
)
def test_usage_errors(docs: Path, arguments: list[str], message: bytes) -> None:
    """What makes no sense ends with 2 before anything is written."""
    (docs.parent / "more").mkdir()
    (docs.parent / "more" / "a.md").write_text("x")
    result = _mrag("tag", *arguments, "-o", "out.jsonl", cwd=docs.parent)
    assert result.returncode == 2
    assert message in result.stderr
    assert result.stdout == b""
    assert not (docs.parent / "out.jsonl").exists()


def test_failed_documents(docs: Path) -> None:
    """An undecodable file is listed, the rest is written, and the command ends with 3."""
    (docs / "\x1b[31m.txt").write_bytes(b"\xff\xfe\x00\xd8")
    result = _mrag("tag", "docs", "--quiet", cwd=docs.parent)
    assert result.returncode == 3
    assert b"failed: docs/\\x1b[31m.txt" in result.stderr
    assert b"\x1b" not in result.stderr
    assert sum(record["type"] == "document" for record in _records(result.stdout)) == 2


def test_malformed_rows(docs: Path) -> None:
    """A JSONL's wrong line ends with 4, its place said."""
    result = _mrag("tag", "-", cwd=docs, stdin=b'{"id":"a","text":"t"}\nno row\n')
    assert result.returncode == 4
    assert b"<stdin>:2: not JSON" in result.stderr
    assert len(_records(result.stdout)) == 2


def test_standard_input(docs: Path) -> None:
    """Without a path a document is read from a pipe."""
    records = _records(_mrag("tag", "--as", "note", cwd=docs, stdin=b"# Title\n\nwords").stdout)
    assert [(record["type"], record["doc"]) for record in records] == [("document", "note"), ("unit", "note")]
    assert records[0]["title"] == "Title"


def test_a_terminal_gets_the_usage(docs: Path) -> None:
    """Without a path and with a terminal the usage is shown, and the exit code is 2."""
    parent, child = pty.openpty()
    try:
        result = subprocess.run([*MRAG, "tag"], cwd=docs, stdin=child, capture_output=True, check=False)
    finally:
        os.close(parent)
        os.close(child)
    assert result.returncode == 2
    assert b"Usage" in result.stderr


def test_hidden_files_are_noticed_unless_quiet(docs: Path) -> None:
    """What is skipped is said once; ``--quiet`` silences it."""
    for number in range(9):
        (docs / f".{number}").write_text("x")
    assert _mrag("tag", "docs", cwd=docs.parent).stderr.count(b"\n") == 1
    assert _mrag("tag", "docs", "-q", cwd=docs.parent).stderr == b""


def _pipe(docs: Path, tagged: str, last: str) -> None:
    mrag = shlex.join(MRAG)
    line = f"{mrag} tag {tagged} | {mrag} extract | {mrag} validate | {mrag} {last}"
    subprocess.run(["sh", "-c", line], cwd=docs.parent, check=True, capture_output=True)


def test_changes_since_an_index(docs: Path) -> None:
    """Against an index, only what changed comes out, then a deletion for what is gone; an update takes it."""
    (docs / "c.txt").write_text("Gone tomorrow.\n")
    _pipe(docs, "docs", "index -o kb")
    nothing = _mrag("tag", "docs", "--changed-since", "kb", cwd=docs.parent)
    assert (nothing.returncode, nothing.stdout) == (0, b"")

    (docs / "b.txt").write_text("The lock was rebuilt in steel.\n")
    (docs / "c.txt").unlink()
    (docs / "d.md").write_text("# New\n\nA new one.\n")
    changed = _mrag("tag", "docs", "--changed-since", "kb", cwd=docs.parent)
    assert [(record["type"], record["doc"]) for record in _records(changed.stdout)] == [
        ("document", "docs/b.txt"),
        ("unit", "docs/b.txt"),
        ("document", "docs/d.md"),
        ("unit", "docs/d.md"),
        ("deletion", "docs/c.txt"),
    ]
    (docs.parent / "other").mkdir()
    (docs.parent / "other" / "x.md").write_text("Another root.")
    other = _records(_mrag("tag", "other", "--changed-since", "kb", cwd=docs.parent).stdout)
    assert [record["type"] for record in other] == ["document", "unit"]

    _pipe(docs, "docs --changed-since kb", "update kb")
    assert _mrag("tag", "docs", "--changed-since", "kb", cwd=docs.parent).stdout == b""


def test_a_missing_index(docs: Path) -> None:
    """``--changed-since`` an index that is not there ends with 10."""
    assert _mrag("tag", "docs", "--changed-since", "kb", cwd=docs.parent).returncode == 10
