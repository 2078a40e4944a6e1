import os
import shutil
from pathlib import Path

import pytest
from kb import Entry, ask, build, files_of, group, mrag, named_files, update

from mrag_cli.ground.errors import IndexCorrupt, IndexMissing, IndexUnsupported, MragError
from mrag_cli.parts.store import graph
from mrag_cli.parts.store.manifest import read_manifest
from mrag_cli.parts.store.snapshot import Snapshot
from mrag_cli.records.models import Deletion
from mrag_cli.stages.info import describe
from mrag_cli.stages.verify import recall, verify

QUESTIONS = ["harbour lamp", "the", "海港 kelp valve"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index with everything in it: two segments, dead rows, aliases, headers, vectors, a graph."""
    directory = tmp_path_factory.mktemp("corruption") / "kb"
    entries = [
        Entry("harbour lamp", "The lamp.", ("kelp oven",), "Lamps"),
        Entry("the 海港", "灯塔。", ("valve",)),
        Entry("valve kelp", "Valves."),
    ]
    smallest = graph.SMALLEST_GRAPH
    graph.SMALLEST_GRAPH = 4
    try:
        build(directory, [group(f"d{number}", entries) for number in range(6)], dense=True)
    finally:
        graph.SMALLEST_GRAPH = smallest
    update(directory, [group("late", entries), Deletion("d2")])
    assert len(read_manifest(directory).segments) == 2
    assert "segments/1/graph" in named_files(directory)
    assert "segments/2/1.dead" in named_files(directory)
    return directory


FILES = [
    *(f"segments/{name}/{file}" for name in (1, 2) for file in ("arrays", "vectors")),
    *(f"segments/1/{kind}.jsonl" for kind in ("documents", "units", "markers")),
    "segments/1/graph",
    "segments/2/1.dead",
]


def _use(directory: Path) -> None:
    """Do everything one can do with an index."""
    snapshot = Snapshot.open(directory)
    for question, retriever in zip(QUESTIONS, ("bm25", "dense", "hybrid"), strict=True):
        ask(directory, question, retriever=retriever, source=retriever != "bm25", ef=10)
    snapshot.known_documents()
    describe(snapshot)
    recall(directory, 10, 5)
    update(directory, [group("d1", [("changed", "changed")]), Deletion("d3")], compact=True)


def _assert_refused(directory: Path, name: str) -> None:
    with pytest.raises(IndexCorrupt, match=Path(name).name):
        Snapshot.open(directory)
    with pytest.raises(IndexCorrupt, match=Path(name).name):
        update(directory, [])
    wrong = {found: what for found, what in verify(directory) if what}
    assert set(wrong) == {name.removeprefix("segments/")}


def test_the_list_is_complete(whole: Path) -> None:
    """Every file of the index, but the second segment's that are like the first's, is damaged below."""
    others = {f"segments/2/{kind}.jsonl" for kind in ("documents", "units", "markers")}
    assert files_of(whole) == {*FILES, *others, "manifest.json"}
    _use(Path(shutil.copytree(whole, whole.parent / "copy")))


@pytest.mark.parametrize("name", FILES)
def test_what_sizes_show_is_refused_at_once(tmp_path: Path, whole: Path, name: str) -> None:
    """A file that is gone, cut, longer, a link or a pipe is named when the index is opened, and by verify."""
    index = tmp_path / "kb"
    shutil.copytree(whole, index)
    path = index / name
    content = path.read_bytes()
    path.unlink()
    _assert_refused(index, name)
    path.write_bytes(content[:-1])
    _assert_refused(index, name)
    path.write_bytes(b"")
    _assert_refused(index, name)
    path.write_bytes(content + b"\n")
    _assert_refused(index, name)
    path.unlink()
    os.mkfifo(path)
    _assert_refused(index, name)
    path.unlink()
    path.symlink_to(whole / name)
    _assert_refused(index, name)
    path.unlink()
    path.mkdir()
    _assert_refused(index, name)


@pytest.mark.parametrize("name", FILES)
def test_other_bytes_are_named_by_verify(tmp_path: Path, whole: Path, name: str) -> None:
    """Zeros, or one other bit, of the right size are named by verify, which exits 13; nothing crashes."""
    index = tmp_path / "kb"
    content = (whole / name).read_bytes()
    changes = [bytes(len(content))]
    for place in sorted({*range(0, len(content), max(1, len(content) // 12)), len(content) - 1}):
        changed = bytearray(content)
        changed[place] ^= 1 << (place % 8)
        changes.append(bytes(changed))
    for changed_content in changes:
        shutil.copytree(whole, index)
        (index / name).write_bytes(changed_content)
        wrong = [found for found, what in verify(index) if what]
        assert wrong == [name.removeprefix("segments/")]
        if name.endswith("graph"):
            with pytest.raises(IndexCorrupt, match="graph"):
                recall(index, 10, 5)
        else:  # a compaction at the latest must not copy what it has not checked
            with pytest.raises(IndexCorrupt, match=str(index)):
                _use(index)
        assert read_manifest(index).generation in (2, 3)
        shutil.rmtree(index)


def test_a_flipped_bit_ends_the_command_with_13(tmp_path: Path, whole: Path) -> None:
    """The command names the file and the way out, and shows no traceback."""
    index = tmp_path / "kb"
    shutil.copytree(whole, index)
    path = index / "segments/1/markers.jsonl"
    content = bytearray(path.read_bytes())
    content[content.index(b'"The lamp.')] ^= 0x04
    path.write_bytes(content)
    checked = mrag("verify", index)
    assert checked.returncode == 13
    assert "segments/1/markers.jsonl: not the bytes that were written" in checked.stdout
    asked = mrag("query", index, "harbour lamp", "--retriever", "bm25")
    assert asked.returncode == 13
    assert f"{path}: row" in asked.stderr
    assert "mrag verify" in asked.stderr
    assert "Traceback" not in asked.stderr


@pytest.mark.parametrize("place", ["segments", "segments/1", "segments/2", "lock", "manifest.json"])
def test_links_lead_nowhere(tmp_path: Path, whole: Path, place: str) -> None:
    """A link in place of a folder, the lock or the manifest is refused; nothing is removed there."""
    index, elsewhere = tmp_path / "kb", tmp_path / "elsewhere"
    shutil.copytree(whole, index)
    if (index / place).is_dir():
        (index / place).rename(elsewhere)
        (elsewhere / "precious").write_text("x")
    else:
        (index / place).unlink(missing_ok=True)
        elsewhere.write_text("precious")
    (index / place).symlink_to(elsewhere)
    with pytest.raises(MragError) as caught:
        update(index, [group("new", [("new", "new")])])
    assert isinstance(caught.value, IndexCorrupt | IndexMissing)
    assert (elsewhere / "precious").exists() if elsewhere.is_dir() else elsewhere.read_text() == "precious"
    if place.startswith("segments"):
        assert any(what for _, what in verify(index))


def test_strange_things_among_segments_do_no_harm(tmp_path: Path, whole: Path) -> None:
    """Files, folders and links that the manifest does not name are garbage; folders inside are left alone."""
    index = tmp_path / "kb"
    shutil.copytree(whole, index)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/precious").write_text("x")
    (index / "segments/9/inside").mkdir(parents=True)
    (index / "segments/stray").write_text("x")
    (index / "segments/link").symlink_to(tmp_path / "elsewhere")
    (index / "segments/1/link").symlink_to(tmp_path / "elsewhere/precious")
    update(index, [group("new", [("new", "new")])])
    assert files_of(index) == named_files(index)
    assert (index / "segments/9/inside").is_dir()
    assert (tmp_path / "elsewhere/precious").exists()


def test_a_manifest_of_another_index(tmp_path: Path, whole: Path) -> None:
    """A manifest that does not belong to the files is refused."""
    index = tmp_path / "kb"
    build(index, [group("a", [("lamp", "one")])], dense=True)
    shutil.copy(whole / "manifest.json", index / "manifest.json")
    with pytest.raises((IndexCorrupt, IndexUnsupported)):
        Snapshot.open(index)
