"""An embedder whose vectors are kept as replies are: what was paid for once is not paid for again.

A build that was killed, or an index that is built again, takes from the cache what it holds. A vector is
known by its model and its text, whatever server the model was asked of.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Protocol

import numpy as np

from mrag_cli.ground.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from mrag_cli.parts.llm.cache import ReplyCache


class _Embedder(Protocol):
    name: str

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one vector of unit length for each text."""


class KeptEmbedder:
    """An embedder behind a cache.

    Args:
        embedder: makes the vectors that are not there.
        model: what the vectors are known by; see `mrag_cli.parts.embedders.identity`.
        cache: where they are kept.

    Attributes:
        name: the embedder's.
    """

    def __init__(self, embedder: _Embedder, model: str, cache: ReplyCache) -> None:
        self.name = embedder.name
        self._embedder = embedder
        self._model = model
        self._cache = cache

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one vector of unit length for each text: float32, (texts, dimension).

        Vectors that were made are on disk before this returns; the same text is embedded once.

        Raises:
            ModelError: see `mrag_cli.parts.embedders.Embedder.embed`; or the cache holds vectors of other
                dimensions under the model's name.
            MragError: the cache cannot be used.
        """
        keys = [self._key(text) for text in texts]
        found = self._cache.vectors(keys)
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
        if missing:
            made = self._embedder.embed(list(missing.values())).astype("<f4")
            new = dict(zip(missing, (vector.tobytes() for vector in made), strict=True))
            self._cache.put_vectors(new, self._model)
            found.update(new)
        if len({len(vector) for vector in found.values()}) > 1:
            raise ModelError(
                f"{self.name}: its vectors have other dimensions than those kept under this name before; "
                "name another cache with --cache, or use --no-cache"
            )
        joined = b"".join(found[key] for key in keys)
        return np.frombuffer(joined, "<f4").reshape(len(keys), -1).astype(np.float32)

    def _key(self, text: str) -> bytes:
        named = f"{self._model}\0{text}".encode("utf-8", "surrogatepass")
        return hashlib.blake2b(named, digest_size=16).digest()
