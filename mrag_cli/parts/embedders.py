"""Embedders: texts in, vectors of unit length out (the paper's Eq. 11).

A SPEC names one:

- ``http://HOST:PORT[/v1][#MODEL]``: a server that speaks OpenAI's ``/v1/embeddings``; the key, if it needs
  one, is in ``MRAG_EMBEDDER_KEY``
- ``fastembed:NAME-or-DIR``: a local ONNX model (install the extra ``local``)
- anything else, such as ``openai/text-embedding-3-small`` or ``ollama/bge-m3``: through litellm
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit, urlunsplit

import numpy as np
import orjson

from mrag_cli.ground.errors import IndexUnsupported, ModelError, UsageError
from mrag_cli.parts.llm.failures import CallFailed, Failure, meaning_of, retry_after

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from email.message import Message

    from numpy.typing import NDArray

_SCHEMES = ("http://", "https://")
_LONGEST_REASON = 300
_LONGEST_TEXT = 60
_LOCAL_BATCH = 16
_DOWN = "check that the embedding server runs, then run the command again"


class Patience(NamedTuple):
    """How long a server is waited for and how often it is asked again.

    Attributes:
        attempts: most requests for the same texts.
        pause: seconds before the second one, doubled before each further one.
        longest: most seconds of a pause, also where the server asks for more.
        timeout: seconds without a sign from the server after which a request is given up.
    """

    attempts: int = 5
    pause: float = 0.5
    longest: float = 30.0
    timeout: float = 60.0


class Embedder:
    """An embedder by its SPEC.

    Args:
        name: the SPEC, as the manifest keeps it.
        call: returns one vector for each text; raises ModelError, or CallFailed where fewer texts at a time
            may be taken.
    """

    def __init__(self, name: str, call: Callable[[Sequence[str]], Any]) -> None:
        self.name = name
        self._call = call
        self._most: int | None = None

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one vector of unit length for each text: float32, (texts, dimension); zeros stay zeros.

        Providers differ in how many texts they take at once: what is refused is asked for in halves, and the
        number that was taken is kept to from then on.

        Raises:
            ModelError: the embedder failed, or returned something that is no vector for each text.
        """
        found: list[NDArray[np.float32]] = []
        start = 0
        while start < len(texts):
            some = texts[start : start + (self._most or len(texts))]
            try:
                found.append(self._vectors(some))
            except CallFailed as failed:
                if len(some) == 1:
                    text = some[0][:_LONGEST_TEXT]
                    raise ModelError(f"{self.name}: {failed}; refused was the text {text!r}") from None
                self._most = (len(some) + 1) // 2
            else:
                start += len(some)
        try:
            return np.concatenate(found)
        except ValueError as error:
            raise ModelError(f"{self.name}: the embedder did not return vectors ({error})") from None

    def _vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        try:
            with np.errstate(over="ignore"):
                vectors = np.asarray(self._call(texts), np.float32)
        except (TypeError, ValueError) as error:
            raise ModelError(f"{self.name}: the embedder did not return vectors ({error})") from None
        if vectors.ndim != 2 or len(vectors) != len(texts) or not vectors.shape[1]:
            raise ModelError(f"{self.name}: {len(texts)} texts gave vectors of shape {vectors.shape}")
        if not np.isfinite(vectors).all():
            raise ModelError(f"{self.name}: a vector holds numbers that are not finite")
        norms = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
        return (vectors / np.where(norms == 0, 1, norms)).astype(np.float32)


def embedder(spec: str, patience: Patience | None = None) -> Embedder:
    """Return the embedder that ``spec`` names; nothing is loaded or called yet.

    Args:
        spec: see the module.
        patience: with a server that is named by its address; None for the default.

    Raises:
        UsageError: it names none.
    """
    if spec.startswith(_SCHEMES):
        return Embedder(spec, _server(spec, patience or Patience()))
    if spec.startswith("fastembed:"):
        return Embedder(spec, _local(spec.removeprefix("fastembed:")))
    if not spec.strip() or not spec.isprintable():
        raise UsageError(f"--embedder {spec!r}: the name of an embedder is expected")
    return Embedder(spec, _provider(spec))


def checked(wanted: str | None, built_with: str) -> str:
    """Return the SPEC to embed a query with.

    A server may have moved and a model's folder too: the model's name after ``#``, or the folder's own name,
    is what must agree.

    Args:
        wanted: what the user asked for, or None for the index's own.
        built_with: what the index was built with.

    Raises:
        IndexUnsupported: the two are not the same model.
    """
    if wanted is None:
        return built_with
    if identity(wanted) != identity(built_with):
        raise IndexUnsupported(
            f"the index was built with the embedder {built_with}, not {wanted}; leave --embedder out"
        )
    return wanted


def identity(spec: str) -> str:
    """Return what a SPEC's model is known by, wherever it runs."""
    if spec.startswith(_SCHEMES):
        model = urlsplit(spec).fragment
        return f"#{model}" if model else spec
    if spec.startswith("fastembed:"):
        return "fastembed:" + spec.removeprefix("fastembed:").rstrip("/").rsplit("/", 1)[-1]
    return spec


def keepable(spec: str) -> bool:
    """Tell whether vectors are worth keeping for another run, and may be.

    A local model's are made again for nothing. A server that is named without its model may have another one
    by then.
    """
    if spec.startswith(_SCHEMES):
        return bool(urlsplit(spec).fragment)
    return not spec.startswith("fastembed:")


def _server(spec: str, patience: Patience) -> Callable[[Sequence[str]], Any]:
    try:
        parts = urlsplit(spec)
        port_is_a_number = parts.port is None or parts.port >= 0
    except ValueError as error:
        raise UsageError(f"--embedder {spec}: this is no address ({error})") from None
    if not (parts.hostname and port_is_a_number and spec.isascii() and spec.isprintable()) or " " in spec:
        raise UsageError(f"--embedder {spec}: http://HOST:PORT[/v1][#MODEL] is expected")
    if "@" in parts.netloc:
        raise UsageError(
            "--embedder: the address holds a password, which would be kept in the index; "
            "a key belongs into MRAG_EMBEDDER_KEY"
        )
    path = parts.path.rstrip("/") or "/v1"
    if not path.endswith("/embeddings"):
        path += "/embeddings"
    url = urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))
    headers = {"Content-Type": "application/json"}
    if key := os.environ.get("MRAG_EMBEDDER_KEY", "").strip():
        if not (key.isascii() and key.isprintable()):
            raise UsageError("MRAG_EMBEDDER_KEY holds characters that no key has")
        headers["Authorization"] = f"Bearer {key}"

    def call(texts: Sequence[str]) -> Any:
        body = orjson.dumps({"input": list(texts), "model": parts.fragment or "default"})
        reply = _post(url, body, headers, patience)
        try:
            rows = {int(row["index"]): row["embedding"] for row in reply["data"]}
            return [rows[number] for number in range(len(texts))]
        except (KeyError, TypeError, ValueError) as error:
            raise ModelError(
                f"{_shown(url)}: the reply does not hold an embedding for each of {len(texts)} texts "
                f"({type(error).__name__}: {error})"
            ) from None

    return call


def _post(url: str, body: bytes, headers: Mapping[str, str], patience: Patience) -> Any:
    """Post and return the JSON reply; a busy or failing server is asked again, with growing pauses.

    Raises:
        ModelError: asking again with the same or fewer texts does not help.
        CallFailed: fewer texts may do.
    """
    for attempt in range(1, patience.attempts + 1):
        try:
            return orjson.loads(_replied(url, body, headers, patience.timeout))
        except orjson.JSONDecodeError:
            raise ModelError(f"{_shown(url)}: the reply is not JSON; check the server's address") from None
        except CallFailed as failed:
            if failed.failure in (Failure.REFUSED, Failure.TOO_LONG):
                raise
            if failed.failure is Failure.FATAL:
                raise ModelError(
                    f"{_shown(url)}: {failed}; check the server's address, the model's name after # and "
                    "the key in MRAG_EMBEDDER_KEY"
                ) from None
            if attempt == patience.attempts:
                raise ModelError(f"{_shown(url)}: {failed}; {_DOWN}") from None
            pause = max(failed.retry_after or 0.0, patience.pause * 2.0 ** (attempt - 1))
            time.sleep(min(pause, patience.longest))
    raise AssertionError("the loop above returns or raises")


def _replied(url: str, body: bytes, headers: Mapping[str, str], timeout: float) -> bytes:
    from http.client import HTTPException
    from urllib.error import HTTPError, URLError
    from urllib.request import HTTPRedirectHandler, Request, build_opener

    class Stay(HTTPRedirectHandler):
        """Follows nowhere: the texts and the key are meant for this server alone."""

        def redirect_request(self, *_: object) -> None:
            """Leave the redirection to be an error."""

    try:
        request = Request(url, body, dict(headers))  # noqa: S310 - the scheme is http or https
        with build_opener(Stay).open(request, timeout=timeout) as reply:
            found: bytes = reply.read()
            return found
    except HTTPError as error:
        raise _refusal(error.code, error.reason, error.headers, error) from None
    except (URLError, TimeoutError, ConnectionError, HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise CallFailed(Failure.UNREACHABLE, str(reason) or type(error).__name__) from None


def _refusal(status: int, reason: str, headers: Message, reply: Any) -> CallFailed:
    try:
        text = " ".join(reply.read(1 << 16).decode("utf-8", "replace").split())[:_LONGEST_REASON]
    except OSError:
        text = ""
    meaning = Failure.FATAL if 300 <= status < 400 else meaning_of(status, text)
    where = f" to {headers['Location']}" if "Location" in headers else ""
    lower = {name.lower(): value for name, value in headers.items()}
    said = f"HTTP {status} {reason}{where}" + (f": {text}" if text else "")
    return CallFailed(meaning, said, retry_after(lower))


def _shown(url: str) -> str:
    """Return an address without its query, which may hold a key."""
    return url.partition("?")[0]


def _local(name: str) -> Callable[[Sequence[str]], Any]:
    loaded: list[Any] = []

    def call(texts: Sequence[str]) -> Any:
        if not loaded:
            loaded.append(_load_local(name))
        # texts of a batch are filled up to the longest: few of like length take the least time
        order = sorted(range(len(texts)), key=lambda number: len(texts[number]))
        vectors = list(loaded[0].embed([texts[number] for number in order], batch_size=_LOCAL_BATCH))
        found = np.empty((len(vectors), len(vectors[0])), np.float32)
        found[order] = vectors
        return found

    return call


def _load_local(name: str) -> Any:
    try:
        from fastembed import TextEmbedding
    except ImportError:
        raise UsageError("fastembed is not installed; `pip install 'mrag-cli[local]'` brings it") from None
    folder = Path(name).expanduser()
    try:
        return _from_folder(folder) if folder.is_dir() else TextEmbedding(model_name=name)
    except Exception as error:
        raise ModelError(
            f"fastembed:{name}: {error}; a folder that is there, with the model as ONNX and its "
            "tokenizer, or one of fastembed's models is expected"
        ) from error


def _from_folder(folder: Path) -> Any:
    """Load a model from a folder as sentence-transformers lays it out; pooling is what the folder says."""
    from uuid import uuid4

    from fastembed import TextEmbedding
    from fastembed.common.model_description import ModelSource, PoolingType

    files = [*sorted(folder.glob("*.onnx")), *sorted(folder.glob("onnx/*.onnx"))]
    if not files:
        raise FileNotFoundError("there is no .onnx file in this folder")
    chosen = next((file for file in files if file.name == "model.onnx"), files[0])
    told = folder / "1_Pooling" / "config.json"
    pooling = orjson.loads(told.read_bytes()) if told.exists() else {}
    # fastembed knows models by names of its own, and no name twice
    own_name = f"mrag-{uuid4().hex}"
    TextEmbedding.add_custom_model(
        own_name,
        pooling=PoolingType.CLS if pooling.get("pooling_mode_cls_token") else PoolingType.MEAN,
        normalization=True,
        sources=ModelSource(hf=own_name),
        dim=int(pooling.get("word_embedding_dimension", 1)),
        model_file=chosen.relative_to(folder).as_posix(),
    )
    return TextEmbedding(own_name, specific_model_path=str(folder))


def _provider(name: str) -> Callable[[Sequence[str]], Any]:
    def call(texts: Sequence[str]) -> Any:
        from mrag_cli.parts.llm.embedding import embed

        return embed(name, texts)

    return call
