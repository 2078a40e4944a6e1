"""`mrag update` as it is called: its notices, and embedders that moved, fell silent or are others."""

from pathlib import Path

import pytest
from command import run
from embedding_server import Given, Post, faithful, serving, unused_address
from kb import build, files_of, group, ranking, stream_file

from mrag_cli.parts.store.manifest import read_manifest
from mrag_cli.records.models import Deletion, StreamPart


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


FIRST = group("a", [("grey herons", "high"), ("otter's holt", "low")])
SECOND = group("b", [("swifts", "asleep")])


def stream(folder: Path, *parts: StreamPart) -> Path:
    """Write a stream."""
    return stream_file(folder / "stream", parts)


def contents(directory: Path) -> dict[str, bytes]:
    """Return every file of an index."""
    return {name: (directory / name).read_bytes() for name in files_of(directory)}


def test_what_was_done_is_said(tmp_path: Path) -> None:
    """Documents are counted by what became of them; a stream that changes nothing says that."""
    kb = tmp_path / "kb"
    build(kb, [FIRST, group("c", [("terns", "hover")])])
    parts = [group("a", [("herons", "fish")]), SECOND, Deletion("c"), Deletion("never")]
    said = run("update", kb, stream(tmp_path, *parts)).stderr
    assert f"{kb}: 1 added, 1 replaced, 1 deleted, 0 unchanged, generation 2" in said
    assert "'never' is to be deleted, but is not in the index" in said
    said = run("update", kb, stream(tmp_path, SECOND)).stderr
    assert "nothing to change, 1 unchanged" in said
    assert run("update", kb, stream(tmp_path, SECOND), "--quiet").stderr == ""


def test_compact_merges_everything(tmp_path: Path) -> None:
    """--compact leaves one segment without dead rows, also when the stream is empty."""
    kb = tmp_path / "kb"
    build(kb, [FIRST, group("c", [("terns", "hover")])])
    run("update", kb, stream(tmp_path, SECOND, Deletion("a")))
    assert len(read_manifest(kb).segments) == 2
    run("update", kb, "/dev/null", "--compact")
    (segment,) = read_manifest(kb).segments
    assert segment.dead is None
    assert [hit[0] for hit in ranking(kb, "swifts herons terns")] == ["b", "c"]


def test_a_server_that_moved(tmp_path: Path) -> None:
    """The index's own embedder is asked; --embedder names its new address, and no other model."""
    kb, moved = tmp_path / "kb", tmp_path / "moved"
    with serving() as (url, _):
        for directory in (kb, moved):
            run("index", stream(tmp_path, FIRST), "-o", directory, "--embedder", f"{url}#hash")
        with serving() as (other, elsewhere):
            run("update", moved, stream(tmp_path, SECOND), "--embedder", f"{other}#hash")
            assert [post.texts for post in elsewhere] == [["swifts"]]
        before = contents(kb)
        for wrong in (f"{url}#other", url, "openai/hash"):
            run("update", kb, stream(tmp_path, SECOND), "--embedder", wrong, code=12)
        assert contents(kb) == before
        run("update", kb, stream(tmp_path, SECOND), "--no-cache")
    assert read_manifest(moved).embedder == read_manifest(kb).embedder
    assert ranking(moved, "swifts", retriever="dense") == ranking(kb, "swifts", retriever="dense")


def test_an_embedder_that_fails_leaves_the_index_as_it_was(tmp_path: Path) -> None:
    """Exit code 20, the same bytes, and a rerun that does what was wanted."""
    kb, up = tmp_path / "kb", [True]

    def script(post: Post, number: int) -> Given:
        return faithful(post, number) if up[0] else Given({"error": "gone"}, 404)

    with serving(script) as (url, _):
        run("index", stream(tmp_path, FIRST), "-o", kb, "--embedder", f"{url}#hash")
        before, up[0] = contents(kb), False
        said = run("update", kb, stream(tmp_path, SECOND), code=20).stderr
        assert "HTTP 404" in said
        assert url in said
        assert contents(kb) == before
        run("update", kb, stream(tmp_path, Deletion("a")))
        up[0] = True
        run("update", kb, stream(tmp_path, SECOND))
    assert [hit[0] for hit in ranking(kb, "swifts", retriever="dense")] == ["b"]


def test_an_embedder_for_an_index_without_vectors(tmp_path: Path) -> None:
    """The option is refused with what makes vectors."""
    build(tmp_path / "kb", [FIRST])
    options = ("--embedder", unused_address())
    done = run("update", tmp_path / "kb", stream(tmp_path, SECOND), *options, code=2)
    assert "mrag index --embedder" in done.stderr


@pytest.mark.parametrize(("where", "code"), [("none", 10), ("stream", 10)])
def test_no_index(where: str, code: int, tmp_path: Path) -> None:
    """A directory that is not there, or a file, is no index; nothing is made."""
    done = run("update", tmp_path / where, stream(tmp_path, FIRST), code=code)
    assert "mrag index" in done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"stream"}
