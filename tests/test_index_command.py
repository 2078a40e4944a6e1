import json
from pathlib import Path

import pytest
from kb import Entry, group, mrag, stream_file
from typer.testing import CliRunner, Result

from mrag_cli.cli.main import app
from mrag_cli.parts.store.manifest import read_manifest


def _run(*arguments: object, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, [*map(str, arguments)], input=stdin)


@pytest.fixture
def stream(tmp_path: Path) -> Path:
    """A stream of two documents."""
    return stream_file(
        tmp_path / "s", [group("a", [Entry("lamp", "one", ("x",))]), group("b", [("kelp", "two")])]
    )


def test_a_stream_becomes_an_index(tmp_path: Path, stream: Path) -> None:
    """From a file or a pipe, with a notice that --quiet leaves out."""
    done = _run("index", "-o", tmp_path / "one", stream)
    assert done.exit_code == 0
    assert done.stdout == ""
    assert f"{tmp_path / 'one'}: 2 documents, 2 markers, generation 1" in done.stderr
    done = _run("index", "-o", tmp_path / "two", "--quiet", stdin=stream.read_text())
    assert (done.exit_code, done.stderr) == (0, "")
    assert read_manifest(tmp_path / "one").segments == read_manifest(tmp_path / "two").segments
    assert _run("index", "-o", tmp_path / "three", stdin="").exit_code == 0


def test_settings(tmp_path: Path, stream: Path) -> None:
    """BM25's parameters are kept, taken over by --like, and changed beside it."""
    one, two, three = (tmp_path / name for name in ("one", "two", "three"))
    assert _run("index", "-o", one, stream, "--k1", 1.2, "--b", 0.75, "--length-pivot", 7).exit_code == 0
    assert read_manifest(one).lexical == (1.2, 0.75, 7.0)
    assert _run("index", "-o", two, stream, "--like", one).exit_code == 0
    assert read_manifest(two).lexical == (1.2, 0.75, 7.0)
    assert _run("index", "-o", three, stream, "--like", one, "--b", 0.5).exit_code == 0
    assert read_manifest(three).lexical == (1.2, 0.5, 7.0)
    assert _run("index", "-o", tmp_path / "four", stream, "--like", tmp_path / "none").exit_code == 10


def test_errors_have_their_codes(tmp_path: Path, stream: Path) -> None:
    """An index that is there 2, a malformed stream 4 with its line, a file in the way 2."""
    assert _run("index", "-o", tmp_path / "kb", stream).exit_code == 0
    again = _run("index", "-o", tmp_path / "kb", stream)
    assert again.exit_code == 2
    assert "--overwrite" in again.stderr
    assert _run("index", "-o", tmp_path / "kb", stream, "--overwrite").exit_code == 0
    assert read_manifest(tmp_path / "kb").generation == 2
    bad = tmp_path / "bad"
    bad.write_text(stream.read_text() + "no json\n")
    wrong = _run("index", "-o", tmp_path / "new", bad)
    assert wrong.exit_code == 4
    assert f"{bad}:7: not JSON" in wrong.stderr
    assert _run("query", tmp_path / "new", "lamp").exit_code == 10
    assert _run("index", "-o", stream, stream).exit_code == 2
    assert _run("index", "-o", tmp_path, stream).exit_code == 2
    pointing = [json.loads(line) for line in stream.read_text().splitlines()]
    pointing[2]["pointers"] = [9]
    bad.write_text("".join(json.dumps(record) + "\n" for record in pointing))
    assert _run("index", "-o", tmp_path / "new", bad).exit_code == 4


def test_an_index_is_built_from_a_real_pipe(tmp_path: Path, stream: Path) -> None:
    """The installed command reads standard input when it is no terminal."""
    done = mrag("index", "-o", tmp_path / "kb", stdin=stream.read_text())
    assert done.returncode == 0
    assert mrag("query", tmp_path / "kb", "lamp").stdout == "one\n"
