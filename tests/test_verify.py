from pathlib import Path

from kb import build, group, named_files, update

from mrag_cli.parts.store.manifest import read_manifest
from mrag_cli.records.models import Deletion
from mrag_cli.stages.verify import named_files as named
from mrag_cli.stages.verify import verify


def test_a_whole_index_is_whole(tmp_path: Path) -> None:
    """Every file that the manifest names is checked once, and nothing is wrong with any."""
    index = tmp_path / "kb"
    build(index, [group(name, [("lamp", name)]) for name in "abcd"], dense=True)
    update(index, [Deletion("a"), group("e", [("kelp", "e")])])
    checked = list(verify(index))
    assert [what for _, what in checked] == [None] * len(checked)
    assert {f"segments/{name}" for name, _ in checked} | {"manifest.json"} == named_files(index)
    assert len(checked) == len(list(named(read_manifest(index)))) == 11


def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    """Each kind of damage has its own words, and the other files are still checked."""
    index = tmp_path / "kb"
    build(index, [group("a", [("lamp", "one")])], dense=True)
    folder = index / "segments/1"
    (folder / "arrays").write_bytes(b"\0" * (folder / "arrays").stat().st_size)
    (folder / "vectors").unlink()
    (folder / "units.jsonl").write_bytes(b"")
    (folder / "markers.jsonl").unlink()
    (folder / "markers.jsonl").symlink_to("/dev/zero")
    (folder / "documents.jsonl").unlink()
    (folder / "documents.jsonl").mkdir()
    found = {name.removeprefix("1/"): what for name, what in verify(index)}
    assert found["arrays"] == "not the bytes that were written"
    assert found["vectors"] == "missing"
    assert found["units.jsonl"] is not None
    assert found["units.jsonl"].startswith("0 bytes where")
    assert found["markers.jsonl"] == f"{folder / 'markers.jsonl'} is a symbolic link"
    assert found["documents.jsonl"] == "no regular file"
