"""Vectors that are kept: what was paid for is not paid for again, after a crash least of all."""

import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import run
from embedding_server import Given, Post, faithful, serving
from hypothesis import given
from hypothesis import strategies as st
from kb import Silent, embedder, files_of, group, settings, stream_file, vector_of

from mrag_cli.ground.errors import ModelError
from mrag_cli.parts.embedders import Embedder
from mrag_cli.parts.llm.cache import ReplyCache
from mrag_cli.parts.llm.kept_embedder import KeptEmbedder
from mrag_cli.stages.index import IndexSettings, build_index

_KEYS = 700
"""More than two requests' worth."""


def counting(asked: list[str], vector: Any = vector_of) -> Embedder:
    """Return an embedder that notes what it is asked for."""

    def call(texts: Sequence[str]) -> Any:
        asked.extend(texts)
        return [vector(text) for text in texts]

    return Embedder("hash", call)


def test_a_text_is_embedded_once(tmp_path: Path) -> None:
    """Within a call, across calls and across runs, with the same bits as before."""
    asked: list[str] = []
    cache = ReplyCache(tmp_path / "cache")
    kept = KeptEmbedder(counting(asked), "hash", cache)
    first = kept.embed(["lamp", "oar", "lamp"])
    again = kept.embed(["boat", "oar"])
    cache.close()
    cache = ReplyCache(tmp_path / "cache")
    later = KeptEmbedder(counting(asked), "hash", cache).embed(["boat", "lamp", "oar"])
    cache.close()
    assert asked == ["lamp", "oar", "boat"]
    assert kept.name == "hash"
    plain = embedder().embed(["lamp", "oar", "boat"])
    np.testing.assert_array_equal(first, plain[[0, 1, 0]])
    np.testing.assert_array_equal(again, plain[[2, 1]])
    np.testing.assert_array_equal(later, plain[[2, 0, 1]])
    assert later.dtype == np.float32


def test_another_model_s_vectors_are_not_taken(tmp_path: Path) -> None:
    """A vector is known by its model, too."""
    asked: list[str] = []
    cache = ReplyCache(tmp_path / "cache")
    for model in ("one", "two", "one"):
        KeptEmbedder(counting(asked), model, cache).embed(["lamp"])
    cache.close()
    assert asked == ["lamp", "lamp"]


def test_a_model_that_changed_its_dimensions_is_an_error(tmp_path: Path) -> None:
    """Vectors of two lengths are never mixed; what to do is said."""
    cache = ReplyCache(tmp_path / "cache")
    KeptEmbedder(counting([]), "hash", cache).embed(["lamp"])
    changed = KeptEmbedder(counting([], lambda _: [1.0]), "hash", cache)
    with pytest.raises(ModelError, match="--no-cache"):
        changed.embed(["lamp", "oar"])
    cache.close()


@given(st.lists(st.lists(st.text(st.characters(), max_size=4), min_size=1, max_size=5), max_size=4))
def test_kept_vectors_are_the_embedder_s_own(calls: list[list[str]]) -> None:
    """Whatever the texts, the vectors are those without a cache."""
    cache = ReplyCache(Path(":memory:"))
    kept = KeptEmbedder(counting([]), "hash", cache)
    for texts in calls:
        np.testing.assert_array_equal(kept.embed(texts), embedder().embed(texts))
    cache.close()


def test_a_cache_of_vectors_keeps_what_was_used_last(tmp_path: Path) -> None:
    """Replies and vectors are pruned together, the longest unused first."""
    cache = ReplyCache(tmp_path / "cache")
    cache.put_vectors({b"a": bytes(1000), b"b": bytes(1000)}, "hash")
    since = time.time()
    cache.put_vectors({b"c": bytes(1000)}, "hash")
    assert cache.vectors([b"a", b"nothing"]) == {b"a": bytes(1000)}
    assert cache.prune(keep_bytes=2500) == 1
    assert set(cache.vectors([b"a", b"b", b"c"])) == {b"a", b"c"}
    assert cache.size().vectors == 2
    assert cache.prune(unused_since=since) == 0
    assert cache.prune(unused_since=time.time() + 1) == 2
    cache.close()


def test_a_build_that_fails_has_paid_for_nothing_in_vain(tmp_path: Path) -> None:
    """What was embedded before the embedder failed is there for the rerun."""
    keys = [(f"key {number}", "value") for number in range(_KEYS)]
    asked: list[str] = []

    def failing(texts: Sequence[str]) -> Any:
        if asked:
            raise ModelError("down")
        asked.extend(texts)
        return [vector_of(text) for text in texts]

    cache = ReplyCache(tmp_path / "cache")
    plain = settings(dense=True)

    def build(name: str, one: Embedder) -> None:
        segment = plain.segment.__class__(plain.segment.lexical, KeptEmbedder(one, "hash", cache), 1)
        build_index([group("a", keys)], tmp_path / name, IndexSettings(segment), Silent())

    with pytest.raises(ModelError):
        build("kb", Embedder("hash", failing))
    paid = len(asked)
    assert 0 < paid < _KEYS
    build("kb", counting(asked))
    assert sorted(asked) == sorted(key for key, _ in keys)
    build("again", counting(asked))
    assert len(asked) == _KEYS
    cache.close()


def test_a_killed_build_embeds_nothing_again(tmp_path: Path) -> None:
    """After a kill -9 between two requests, the rerun asks only for what had not arrived."""
    entries = [(f"key {number}", f"value {number}") for number in range(_KEYS)]
    stream = stream_file(tmp_path / "stream", [group("a", entries)])
    hanging = [True]

    def script(post: Post, number: int) -> Given:
        given = faithful(post, number)
        return Given(given.body, delay=60 if hanging[0] and number == 2 else 0)

    with serving(script) as (url, posts):
        build = ["index", stream, "--embedder", f"{url}/v1#hash", "--cache", tmp_path / "cache"]
        command = [sys.executable, "-m", "mrag_cli", *map(str, build), "-o", str(tmp_path / "kb")]
        killed = subprocess.Popen(command)
        deadline = time.monotonic() + 30
        while len(posts) < 3 and time.monotonic() < deadline:
            time.sleep(0.01)
        killed.send_signal(signal.SIGKILL)
        killed.wait(30)
        hanging[0] = False
        before = [text for post in posts[:2] for text in post.texts]
        run(*build, "-o", tmp_path / "kb")
        after = [text for post in posts[3:] for text in post.texts]
        assert sorted(before + after) == sorted(key for key, _ in entries)

        requests = len(posts)
        run(*build, "-o", tmp_path / "again")
        assert len(posts) == requests
        run(*build[:-2], "--no-cache", "-o", tmp_path / "fresh")
        assert len(posts) > requests
    (name,) = (name for name in files_of(tmp_path / "again") if name.endswith("/vectors"))
    assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "fresh" / name).read_bytes()
