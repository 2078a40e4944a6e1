from pathlib import Path

from kb import build, group, stream_file
from typer.testing import CliRunner, Result

from mrag_cli.cli.main import app
from mrag_cli.parts.store.manifest import read_manifest
from mrag_cli.records.models import Deletion


def _run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [*map(str, arguments)])


def test_what_was_done_is_said(tmp_path: Path) -> None:
    """Added, replaced, deleted, unchanged and the generation; or that there was nothing to change."""
    index = tmp_path / "kb"
    build(index, [group(name, [("lamp", name)]) for name in "abcde"])
    changes = [
        group("a", [("lamp", "new")]),
        group("b", [("lamp", "b")]),
        group("f", [("x", "f")]),
        Deletion("c"),
    ]
    done = _run("update", index, stream_file(tmp_path / "s", changes))
    assert done.exit_code == 0
    assert done.stdout == ""
    assert "1 added, 1 replaced, 1 deleted, 1 unchanged, generation" in done.stderr
    again = _run("update", index, stream_file(tmp_path / "s", changes[:3]))
    assert f"{index}: nothing to change, 3 unchanged" in again.stderr
    assert _run("update", index, "/dev/null", "--compact").exit_code == 0
    assert len(read_manifest(index).segments) == 1


def test_errors_have_their_codes(tmp_path: Path) -> None:
    """No index 10, a malformed stream 4, a damaged index 13, a newer one 12; the index stays as it was."""
    assert _run("update", tmp_path / "none", "/dev/null").exit_code == 10
    index = tmp_path / "kb"
    build(index, [group("a", [("lamp", "a")])])
    bad = tmp_path / "bad"
    bad.write_text('{"type":"document","doc":"x","units":1}\n{"type":"marker"}\n')
    assert _run("update", index, bad).exit_code == 4
    assert read_manifest(index).generation == 1
    manifest = (index / "manifest.json").read_bytes()
    (index / "manifest.json").write_bytes(b'{"format":2}')
    assert _run("update", index, "/dev/null").exit_code == 12
    (index / "manifest.json").write_bytes(manifest)
    (index / "segments/1/arrays").write_bytes(b"")
    assert _run("update", index, "/dev/null").exit_code == 13
