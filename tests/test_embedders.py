"""Embedders: the names they go by, and a server on loopback that behaves well, badly or not at all."""

import base64
import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from embedding_server import Given, Post, faithful, rows, serving, unused_address
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from kb import DIMENSION, vector_of
from numpy.typing import NDArray

from mrag_cli.ground.errors import IndexUnsupported, ModelError, MragError, UsageError
from mrag_cli.parts.embedders import Embedder, Patience, checked, embedder, identity, keepable
from mrag_cli.parts.llm.failures import CallFailed, Failure

QUICK = Patience(attempts=3, pause=0.01, longest=0.05, timeout=5.0)
TEXTS = ["grey herons", "an otter's holt", "水獭"]


def test_a_server_is_asked_for_openai_s_embeddings() -> None:
    """Texts go out under the model's name, and come back as vectors of unit length in the texts' order."""
    with serving() as (url, posts):
        found = embedder(f"{url}/v1#small").embed(TEXTS)
    assert (posts[0].path, posts[0].body) == ("/v1/embeddings", {"input": TEXTS, "model": "small"})
    assert "authorization" not in posts[0].headers
    assert found.shape == (3, DIMENSION)
    assert found.dtype == np.float32
    expected = np.array([vector_of(text) for text in TEXTS])
    np.testing.assert_allclose(found, expected / np.linalg.norm(expected, axis=1, keepdims=True), atol=1e-6)


@pytest.mark.parametrize(
    ("below", "path"),
    [
        ("", "/v1/embeddings"),
        ("/", "/v1/embeddings"),
        ("/v1/", "/v1/embeddings"),
        ("/api/v2", "/api/v2/embeddings"),
        ("/v1/embeddings", "/v1/embeddings"),
        ("/v1?version=3", "/v1/embeddings?version=3"),
    ],
)
def test_an_address_may_be_short(below: str, path: str) -> None:
    """The path of the API is added where it is left out."""
    with serving() as (url, posts):
        embedder(url + below).embed(["x"])
    assert posts[0].path == path


def test_the_key_is_sent_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """The key goes into the header without the line's end it was read with, and into no message."""
    monkeypatch.setenv("MRAG_EMBEDDER_KEY", "quite-secret-0123\n")
    refused = Given({"error": {"message": "wrong key quite-secret-0123"}}, 401)
    with serving(lambda *_: refused) as (url, posts), pytest.raises(ModelError) as error:
        embedder(url, QUICK).embed(TEXTS)
    assert posts[0].headers["authorization"] == "Bearer quite-secret-0123"
    assert len(posts) == 1
    assert "secret" not in str(error.value)
    assert "HTTP 401" in str(error.value)
    assert "MRAG_EMBEDDER_KEY" in str(error.value)


@pytest.mark.parametrize("key", ["two\nlines", "schlüssel"])
def test_a_key_that_is_none_is_refused_without_being_shown(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that no header can carry ends before anything is sent."""
    monkeypatch.setenv("MRAG_EMBEDDER_KEY", key)
    with pytest.raises(UsageError, match="MRAG_EMBEDDER_KEY") as error:
        embedder("http://127.0.0.1:1")
    assert key[-3:] not in str(error.value)


def test_a_key_goes_to_no_other_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """A redirection is an error that says where it leads."""
    monkeypatch.setenv("MRAG_EMBEDDER_KEY", "quite-secret-0123")
    with serving() as (other, elsewhere):
        moved = Given(b"", 307, {"Location": f"{other}/v1/embeddings"})
        with serving(lambda *_: moved) as (url, _), pytest.raises(ModelError, match="HTTP 307") as error:
            embedder(url, QUICK).embed(TEXTS)
    assert other in str(error.value)
    assert not elsewhere


@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_a_busy_or_failing_server_is_asked_again(status: int) -> None:
    """What goes away by itself costs a pause and nothing else."""
    script = [Given({"error": "later"}, status), Given({"error": "later"}, status)]
    with serving(lambda post, n: script[n] if n < 2 else faithful(post, n)) as (url, posts):
        assert embedder(url, QUICK).embed(TEXTS).shape == (3, DIMENSION)
    assert len(posts) == 3


def test_a_server_that_stays_broken_is_given_up() -> None:
    """After the last attempt the error says what the server said, and what to do."""
    said = r"HTTP 500.*out of memory.*run the command again"
    broken = Given({"error": "out of memory"}, 500)
    with serving(lambda *_: broken) as (url, posts), pytest.raises(ModelError, match=said) as error:
        embedder(f"{url}?key=abc", QUICK).embed(TEXTS)
    assert len(posts) == QUICK.attempts
    assert url in str(error.value)
    assert "abc" not in str(error.value)


@pytest.mark.parametrize(("asked", "least", "most"), [("0.3", 0.3, 5), ("9999", 0.5, 5), ("soon", 0, 0.25)])
def test_a_pause_is_as_long_as_the_server_wants_within_reason(asked: str, least: float, most: float) -> None:
    """Retry-After lengthens the pause up to the longest; what is no number is passed over."""
    busy = Given({}, 429, {"Retry-After": asked})
    with serving(lambda post, n: faithful(post, n) if n else busy) as (url, _):
        since = time.monotonic()
        embedder(url, Patience(attempts=2, pause=0.01, longest=0.5)).embed(["x"])
        assert least <= time.monotonic() - since < most


def test_nobody_there() -> None:
    """A refused connection names the address and what to check."""
    url = unused_address()
    with pytest.raises(ModelError, match="check that the embedding server runs") as error:
        embedder(url, QUICK).embed(["x"])
    assert url in str(error.value)


def test_a_server_that_hangs_is_given_up() -> None:
    """A request without an answer ends after the time limit, each time."""
    with serving(lambda *_: Given({}, delay=30)) as (url, posts):
        since = time.monotonic()
        with pytest.raises(ModelError, match="timed out"):
            embedder(url, QUICK._replace(timeout=0.1)).embed(["x"])
        assert time.monotonic() - since < 5
    assert len(posts) == QUICK.attempts


def test_a_reply_that_breaks_off_is_asked_for_again() -> None:
    """Fewer bytes than announced are no reply."""
    broken = Given(b'{"data": [', announced=100)
    with serving(lambda post, n: faithful(post, n) if n else broken) as (url, posts):
        assert embedder(url, QUICK).embed(["x"]).shape == (1, DIMENSION)
    assert len(posts) == 2


@pytest.mark.parametrize(
    "body",
    [
        b"<html>hello</html>",
        b"",
        b"\xff",
        b'{"data": [{"index": 0, "embedding": [NaN, 1.0]}]}',
        b'{"data": [{"index": 0, "embedding": [1e999, 1.0]}]}',
        b'{"data": [{"index": 0, "embedding": [1e300, 1.0]}]}',
        {},
        [],
        None,
        {"data": None},
        {"data": [{"embedding": [1.0]}]},
        {"data": [{"index": "first", "embedding": [1.0]}]},
        {"data": [{"index": 1, "embedding": [1.0]}]},
        rows([[]]),
        {"data": [{"index": 0, "embedding": None}]},
        {"data": [{"index": 0, "embedding": [None, 1.0]}]},
        {"data": [{"index": 0, "embedding": [[1.0]]}]},
        {"data": [{"index": 0, "embedding": base64.b64encode(b"1234").decode()}]},
        {"data": [{"index": 0, "embedding": {"dense": [1.0]}}]},
    ],
)
def test_a_reply_that_holds_no_vectors_is_an_error(body: Any) -> None:
    """What is no vector of finite numbers for each text is the embedder's failure, and is not retried."""
    with serving(lambda *_: Given(body)) as (url, posts), pytest.raises(ModelError):
        embedder(url, QUICK).embed(["x"])
    assert len(posts) == 1


@pytest.mark.parametrize(
    "indexes", [[0, 0, 1], [0, 2, 3], [0, 1], [1, 2, 3]], ids=["twice", "a gap", "too few", "from 1"]
)
def test_no_text_gets_the_vector_of_another(indexes: list[int]) -> None:
    """Each text's own index must be there."""
    data = [{"index": index, "embedding": [1.0, index]} for index in indexes]
    with serving(lambda *_: Given({"data": data})) as (url, _), pytest.raises(ModelError, match="each of 3"):
        embedder(url, QUICK).embed(TEXTS)


def test_vectors_of_several_lengths_are_an_error() -> None:
    """A ragged reply is refused."""
    with serving(lambda *_: Given(rows([[1.0], [1.0, 2.0]]))) as (url, _), pytest.raises(ModelError):
        embedder(url, QUICK).embed(["x", "y"])


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_server_that_takes_few_texts_gets_few(status: int) -> None:
    """Too many texts are asked for in halves, and no longer all together from then on."""

    def script(post: Post, number: int) -> Given:
        too_many = Given({"error": "batch size exceeds the maximum of 4"}, status)
        return too_many if len(post.texts) > 4 else faithful(post, number)

    texts = [f"text {number}" for number in range(10)]
    with serving(script) as (url, posts):
        one = embedder(url, QUICK)
        found = [one.embed(texts), one.embed(texts)]
        sizes = [len(post.texts) for post in posts]
    assert sizes == [10, 5, 3, 3, 3, 1, 3, 3, 3, 1]
    with serving() as (url, _):
        np.testing.assert_array_equal(found, [embedder(url).embed(texts)] * 2)


def test_a_text_that_is_refused_is_named() -> None:
    """A refusal that has nothing to do with the number of texts shows the text, and its server's words."""

    def script(post: Post, number: int) -> Given:
        bad = any("heron" in text for text in post.texts)
        return Given({"error": "input is too long"}, 400) if bad else faithful(post, number)

    with serving(script) as (url, _), pytest.raises(ModelError, match=r"HTTP 400.*too long.*grey herons"):
        embedder(url, QUICK).embed(TEXTS)


def test_a_wrong_model_is_an_error_at_once() -> None:
    """A model that the server does not have is not asked for again."""
    missing = Given({"error": {"message": "The model `x` does not exist"}}, 404)
    with serving(lambda *_: missing) as (url, posts), pytest.raises(ModelError, match="does not exist"):
        embedder(f"{url}#x", QUICK).embed(TEXTS)
    assert len(posts) == 1


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("", "name of an embedder"),
        ("  ", "name of an embedder"),
        ("openai/\udcff", "name of an embedder"),
        ("http://", "HOST:PORT"),
        ("http://host:port/v1", "address"),
        ("http://host:99999", "address"),
        ("http://[::1", "address"),
        ("http://host/a b", "HOST:PORT"),
        ("http://host/\n", "HOST:PORT"),
        ("http://hôst/v1", "HOST:PORT"),
        ("https://me:secret@host/v1", "MRAG_EMBEDDER_KEY"),
    ],
)
def test_what_names_no_embedder_is_refused_at_once(spec: str, said: str) -> None:
    """A name that cannot be one is a usage error before anything is called; no password is shown."""
    with pytest.raises(UsageError, match=said) as error:
        embedder(spec)
    assert "secret" not in str(error.value)


def test_a_local_model_without_fastembed_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is loaded before there is something to embed; then the missing extra is named."""
    monkeypatch.setitem(sys.modules, "fastembed", None)
    one = embedder("fastembed:small")
    with pytest.raises(UsageError, match=r"mrag-cli\[local\]"):
        one.embed(["x"])


def test_a_local_model_embeds_by_length_and_answers_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts of like length are embedded together, which wastes nothing; vectors come in the texts' order."""
    batches: list[str] = []

    class TextEmbedding:
        def __init__(self, model_name: str) -> None:
            assert model_name == "small"

        def embed(self, texts: list[str], batch_size: int) -> Iterator[NDArray[np.float32]]:
            assert batch_size < 64
            batches.extend(texts)
            return (np.array([len(text), ord(text[0])], np.float32) for text in texts)

    monkeypatch.setitem(sys.modules, "fastembed", SimpleNamespace(TextEmbedding=TextEmbedding))
    texts = ["ccc", "a", "bb", "dddd", "e"]
    found = embedder("fastembed:small").embed(texts)
    assert batches == sorted(texts, key=len)
    expected = np.array([[len(text), ord(text[0])] for text in texts], np.float64)
    np.testing.assert_allclose(found, expected / np.linalg.norm(expected, axis=1, keepdims=True), rtol=1e-6)


def test_a_zero_vector_stays_zero() -> None:
    """A text that the model has nothing to say of is near to nothing."""
    found = Embedder("zero", lambda texts: [[0.0, 0.0] for _ in texts]).embed(["x", "y"])
    assert found.tolist() == [[0.0, 0.0], [0.0, 0.0]]


@given(
    arrays.arrays(
        np.float32,
        st.tuples(st.integers(1, 5), st.integers(1, 8)),
        elements=st.floats(-(2.0**120), 2.0**120, width=32).filter(lambda x: x == 0 or abs(x) > 2.0**-100),
    )
)
def test_vectors_have_unit_length_whatever_their_size(vectors: Any) -> None:
    """Very large and very small numbers too are divided by their vector's length."""
    found = Embedder("any", lambda _: vectors).embed(["x"] * len(vectors))
    lengths = np.linalg.norm(found.astype(np.float64), axis=1)
    np.testing.assert_allclose(lengths, [float(row.any()) for row in vectors], atol=1e-5)


def test_pieces_of_several_dimensions_are_an_error() -> None:
    """A model that answers the second half with other dimensions is no model."""

    def call(texts: Sequence[str]) -> Any:
        if len(texts) > 1:
            raise CallFailed(Failure.REFUSED, "too many")
        return [[1.0] * len(texts[0])]

    with pytest.raises(ModelError, match="did not return vectors"):
        Embedder("odd", call).embed(["a", "bb"])


@pytest.mark.parametrize(
    ("wanted", "built_with", "asked"),
    [
        (None, "openai/small", "openai/small"),
        ("openai/small", "openai/small", "openai/small"),
        ("http://new:1/v1#small", "http://old:2/v1#small", "http://new:1/v1#small"),
        ("fastembed:/here/mini", "fastembed:/there/mini/", "fastembed:/here/mini"),
        ("fastembed:/here/mini", "fastembed:mini/", "fastembed:/here/mini"),
        ("fastembed:mini", "fastembed:../mini", "fastembed:mini"),
    ],
)
def test_the_same_model_elsewhere_is_the_same(wanted: str | None, built_with: str, asked: str) -> None:
    """A server or a folder may have moved; without a wish the index's own is asked."""
    assert checked(wanted, built_with) == asked


@pytest.mark.parametrize(
    ("wanted", "built_with"),
    [
        ("openai/large", "openai/small"),
        ("http://here#large", "http://here#small"),
        ("http://here:1", "http://here:2"),
        ("http://here#small", "http://here"),
        ("openai/small", "http://here#small"),
        ("fastembed:maxi", "fastembed:mini"),
        ("mini", "fastembed:mini"),
    ],
)
def test_another_model_is_refused(wanted: str, built_with: str) -> None:
    """Names that do not say the same model are refused, with both of them and what to do."""
    with pytest.raises(IndexUnsupported, match="leave --embedder out") as error:
        checked(wanted, built_with)
    assert wanted in str(error.value)
    assert built_with in str(error.value)


@pytest.mark.parametrize(
    ("spec", "name", "kept"),
    [
        ("openai/small", "openai/small", True),
        ("http://here:1/v1#small", "#small", True),
        ("http://here:1/v1", "http://here:1/v1", False),
        ("fastembed:models/mini", "fastembed:mini", False),
    ],
)
def test_vectors_are_kept_where_they_cost_and_their_model_is_known(spec: str, name: str, kept: bool) -> None:
    """A local model's vectors are free, and a server without a model's name may have changed it."""
    assert identity(spec) == name
    assert keepable(spec) is kept


@given(st.binary(max_size=40) | st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=3) | st.just("data"),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(["data", "index", "embedding"]), inner, max_size=3),
    max_leaves=8,
).map(lambda value: json.dumps(value).encode()))  # fmt: skip
def test_whatever_a_server_says_no_error_is_a_bug(body: bytes) -> None:
    """Any reply gives vectors or an error of the embedder."""
    with serving(lambda *_: Given(body)) as (url, _), suppress(ModelError):
        assert embedder(url, QUICK).embed(["x"]).shape[0] == 1


def test_a_folder_without_a_model_is_named(tmp_path: Path) -> None:
    """Where fastembed is installed the missing file is said; where it is not, what to install."""
    with pytest.raises(MragError, match=r"\.onnx|mrag-cli\[local\]"):
        embedder(f"fastembed:{tmp_path}").embed(["x"])
