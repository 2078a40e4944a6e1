"""`mrag index` as it is called: its settings, its embedder, and what it leaves when that fails."""

from pathlib import Path

import pytest
from command import run
from embedding_server import Given, Post, rows, serving
from kb import files_of, group, stream_file, vector_of
from typer.testing import Result

from mrag_cli.parts.store.manifest import read_manifest


@pytest.fixture
def stream(tmp_path: Path) -> Path:
    """Write a stream of two documents."""
    return stream_file(
        tmp_path / "stream",
        [group("a", [("grey herons", "high"), ("otter's holt", "low")]), group("b", [("swifts", "asleep")])],
    )


def index(stream: Path, *options: object, code: int = 0, **environment: str) -> Result:
    """Run `mrag index` with a cache of its own, and check its exit code."""
    cache = str(stream.parent / "cache")
    arguments = ("index", stream, "-o", stream.parent / "kb", *options)
    return run(*arguments, code=code, MRAG_CACHE=cache, **environment)


def test_what_was_made_is_said(stream: Path) -> None:
    """The notice counts documents and markers; stdout stays empty."""
    done = index(stream)
    assert done.stdout == ""
    assert f"{stream.parent / 'kb'}: 2 documents, 3 markers, generation 1" in done.stderr


def test_settings_are_kept_and_taken_from_another_index(stream: Path, tmp_path: Path) -> None:
    """BM25's parameters and the vectors' type are in the manifest; --like takes them, options still win."""
    with serving() as (url, _):
        spec = f"{url}/v1#hash"
        index(stream, "--k1", "1.2", "--b", "0.75", "--length-pivot", "9", "--embedder", spec,
              "--vector-dtype", "float16")  # fmt: skip
        first = read_manifest(tmp_path / "kb")
        assert (first.lexical.k1, first.lexical.b, first.lexical.pivot) == (1.2, 0.75, 9.0)
        assert first.embedder is not None
        assert (first.embedder.name, first.embedder.dtype) == (spec, "float16")
        index(stream, "--overwrite", "--like", tmp_path / "kb", "--b", "0.5")
    second = read_manifest(tmp_path / "kb")
    assert (second.lexical.k1, second.lexical.b, second.lexical.pivot) == (1.2, 0.5, 9.0)
    assert second.embedder == first.embedder
    assert second.generation == first.generation + 1


def test_the_embedder_may_come_from_the_environment(stream: Path, tmp_path: Path) -> None:
    """MRAG_EMBEDDER is used where no option is given; the key goes along and is kept nowhere."""
    with serving() as (url, posts):
        index(stream, MRAG_EMBEDDER=f"{url}#hash", MRAG_EMBEDDER_KEY="quite-secret-0123")
    assert {post.headers["authorization"] for post in posts} == {"Bearer quite-secret-0123"}
    for folder in (tmp_path / "kb", tmp_path):
        for path in folder.rglob("*"):
            assert path.is_dir() or b"quite-secret" not in path.read_bytes()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--embedder", " "), "name of an embedder"),
        (("--embedder", "http://me:pw@host"), "MRAG_EMBEDDER_KEY"),
        (("--k1", "-1"), "--k1"),
        (("--b", "2"), "--b"),
        (("--length-pivot", "0"), "--length-pivot"),
        (("--vector-dtype", "int8"), "--vector-dtype"),
        (("--threads", "0"), "--threads"),
        (("--wait", "-1"), "--wait"),
    ],
)
def test_options_that_make_no_sense_leave_nothing(stream: Path, options: tuple[str, ...], said: str) -> None:
    """A usage error names the option and makes no directory."""
    assert said in index(stream, *options, code=2).stderr
    assert not (stream.parent / "kb").exists()


def test_an_embedder_that_is_down_leaves_no_index_and_an_old_one_whole(stream: Path, tmp_path: Path) -> None:
    """Exit code 20 with the address; what was there is there, byte for byte."""
    refused = Given({"error": "model not loaded"}, 404)
    with serving(lambda *_: refused) as (url, _):
        assert "model not loaded" in index(stream, "--embedder", url, code=20).stderr
        run("info", tmp_path / "kb", code=10)
        index(stream)
        before = {name: (tmp_path / "kb" / name).read_bytes() for name in files_of(tmp_path / "kb")}
        index(stream, "--embedder", url, "--overwrite", code=20)
    assert before == {name: (tmp_path / "kb" / name).read_bytes() for name in before}
    run("verify", tmp_path / "kb")


def test_a_model_that_changes_its_mind_is_no_model(stream: Path) -> None:
    """Vectors of other dimensions in a later request end with 12."""
    entries = [(f"key {number}", "value") for number in range(300)]
    stream_file(stream, [group("a", entries)])

    def script(post: Post, number: int) -> Given:
        return Given(rows([vector_of(text)[: 16 - number] for text in post.texts]))

    with serving(script) as (url, _):
        assert "dimensions" in index(stream, "--embedder", url, code=12).stderr


def test_a_cache_that_cannot_be_used_is_named(stream: Path) -> None:
    """A folder in the cache's place is an error that says which option to use; --no-cache needs none."""
    with serving() as (url, _):
        spec = f"{url}#hash"
        assert "--cache" in index(stream, "--embedder", spec, "--cache", stream.parent, code=1).stderr
        index(stream, "--embedder", spec, "--no-cache", "--overwrite")
    assert not (stream.parent / "cache").exists()


def test_an_index_of_nothing_knows_its_embedder(stream: Path) -> None:
    """Without a document the dimension is asked for all the same."""
    stream_file(stream, [])
    with serving() as (url, posts):
        index(stream, "--embedder", f"{url}#hash")
    manifest = read_manifest(stream.parent / "kb")
    assert manifest.embedder is not None
    assert manifest.embedder.dimension == len(vector_of("x"))
    assert len(posts) == 1


def test_like_needs_an_index(stream: Path, tmp_path: Path) -> None:
    """A directory without an index ends with 10."""
    assert "no index there" in index(stream, "--like", tmp_path, code=10).stderr
