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
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

import numpy as np
import orjson

from mrag_cli.ground.errors import IndexUnsupported, ModelError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

_TIMEOUT = 60.0
_ATTEMPTS = 5
_LONGEST_PAUSE = 30.0


class Embedder:
    """An embedder by its SPEC.

    Args:
        name: the SPEC, as the manifest keeps it.
        call: returns one vector for each text; raises ModelError.
    """

    def __init__(self, name: str, call: Callable[[Sequence[str]], Any]) -> None:
        self.name = name
        self._call = call

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one vector of unit length for each text: float32, (texts, dimension).

        Raises:
            ModelError: the embedder failed, or returned something that is no vector for each text.
        """
        try:
            vectors = np.asarray(self._call(texts), np.float32)
        except (TypeError, ValueError) as error:
            raise ModelError(f"{self.name}: the embedder did not return vectors ({error})") from None
        if vectors.ndim != 2 or len(vectors) != len(texts) or not vectors.shape[1]:
            raise ModelError(f"{self.name}: {len(texts)} texts gave vectors of shape {vectors.shape}")
        if not np.isfinite(vectors).all():
            raise ModelError(f"{self.name}: a vector holds numbers that are not finite")
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        return (vectors / np.where(norms == 0, 1, norms)).astype(np.float32)


def embedder(spec: str) -> Embedder:
    """Return the embedder that ``spec`` names; nothing is loaded or called yet.

    Raises:
        UsageError: it names none.
    """
    if spec.startswith(("http://", "https://")):
        return Embedder(spec, _server(spec))
    if spec.startswith("fastembed:"):
        return Embedder(spec, _local(spec.removeprefix("fastembed:")))
    if not spec.strip():
        raise UsageError("the embedder's name is empty")
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
    if _identity(wanted) != _identity(built_with):
        raise IndexUnsupported(
            f"the index was built with the embedder {built_with}, not {wanted}; leave --embedder out"
        )
    return wanted


def _identity(spec: str) -> str:
    if spec.startswith(("http://", "https://")):
        model = urlsplit(spec).fragment
        return f"#{model}" if model else spec
    if spec.startswith("fastembed:"):
        return "fastembed:" + spec.rstrip("/").rsplit("/", 1)[-1]
    return spec


def _server(spec: str) -> Callable[[Sequence[str]], Any]:
    parts = urlsplit(spec)
    path = parts.path.rstrip("/") or "/v1"
    if not path.endswith("/embeddings"):
        path += "/embeddings"
    url = urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))
    headers = {"Content-Type": "application/json"}
    if key := os.environ.get("MRAG_EMBEDDER_KEY"):
        headers["Authorization"] = f"Bearer {key}"

    def call(texts: Sequence[str]) -> Any:
        body = orjson.dumps({"input": list(texts), "model": parts.fragment or "default"})
        reply = _post(url, body, headers)
        try:
            rows = sorted(reply["data"], key=lambda row: int(row["index"]))
            return [row["embedding"] for row in rows]
        except (KeyError, TypeError) as error:
            raise ModelError(f"{url}: the reply holds no embeddings ({error})") from None

    return call


def _post(url: str, body: bytes, headers: dict[str, str]) -> Any:
    """Post and return the JSON reply; a busy or failing server is asked again, with growing pauses."""
    from urllib.error import HTTPError, URLError
    from urllib.request import Request, urlopen

    request = Request(url, body, headers)  # noqa: S310 - the scheme is http or https
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            with urlopen(request, timeout=_TIMEOUT) as reply:  # noqa: S310 - likewise
                return orjson.loads(reply.read())
        except HTTPError as error:
            wrong = f"HTTP {error.code} {error.reason}"
            pause = float(error.headers.get("Retry-After", "") or 0) if _is_number(error) else 0.0
            if error.code not in (408, 429) and error.code < 500:
                break
        except (URLError, TimeoutError, ConnectionError) as error:
            wrong, pause = str(getattr(error, "reason", error)), 0.0
        except orjson.JSONDecodeError:
            wrong = "the reply is not JSON"
            break
        if attempt < _ATTEMPTS:
            time.sleep(min(max(pause, 0.25 * 2**attempt), _LONGEST_PAUSE))
    raise ModelError(f"{url}: {wrong}; check that the embedding server runs, then run the command again")


def _is_number(error: Any) -> bool:
    return str(error.headers.get("Retry-After", "")).replace(".", "", 1).isdigit()


def _local(name: str) -> Callable[[Sequence[str]], Any]:
    loaded: list[Any] = []

    def call(texts: Sequence[str]) -> Any:
        if not loaded:
            loaded.append(_load_local(name))
        return np.stack(list(loaded[0].embed(list(texts))))

    return call


def _load_local(name: str) -> Any:
    try:
        from fastembed import TextEmbedding
    except ImportError:
        raise UsageError("fastembed is not installed; `pip install 'mrag-cli[local]'` brings it") from None
    try:
        if os.path.isdir(name):  # noqa: PTH112 - the SPEC is a string
            return TextEmbedding(
                model_name="sentence-transformers/all-MiniLM-L6-v2", specific_model_path=name
            )
        return TextEmbedding(model_name=name)
    except Exception as error:
        raise ModelError(f"fastembed:{name}: {error}") from error


def _provider(name: str) -> Callable[[Sequence[str]], Any]:
    def call(texts: Sequence[str]) -> Any:
        from mrag_cli.parts.llm.embedding import embed

        return embed(name, texts)

    return call
