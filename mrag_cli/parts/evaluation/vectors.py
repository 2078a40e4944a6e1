"""An embedder that remembers: a text is embedded once in an evaluation, and once in its reruns."""

from __future__ import annotations

import hashlib
import sqlite3
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

_ASKED_AT_ONCE = 500


class _Embedder(Protocol):
    name: str

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]: ...


class KeptVectors:
    """An embedder with a file of the vectors it has made.

    Args:
        embedder: makes the vectors.
        path: the file; None keeps them in memory.
    """

    def __init__(self, embedder: _Embedder, path: Path | None) -> None:
        self.name = embedder.name
        self._embedder = embedder
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
        self._kept = sqlite3.connect(":memory:" if path is None else path)
        # What a crash loses is made again, so nothing needs to wait for the disk.
        self._kept.execute("PRAGMA synchronous=OFF")
        self._kept.execute("CREATE TABLE IF NOT EXISTS vectors (digest BLOB PRIMARY KEY, vector BLOB)")

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one vector of unit length for each text: float32, (texts, dimension).

        Raises:
            ModelError: the embedder failed.
        """
        digests = [self._digest(text) for text in texts]
        found: dict[bytes, bytes] = {}
        for start in range(0, len(digests), _ASKED_AT_ONCE):
            some = digests[start : start + _ASKED_AT_ONCE]
            marks = ",".join("?" * len(some))
            query = f"SELECT digest, vector FROM vectors WHERE digest IN ({marks})"  # noqa: S608 - only marks
            found.update(self._kept.execute(query, some))
        new = {digest: text for digest, text in zip(digests, texts, strict=True) if digest not in found}
        if new:
            vectors = np.ascontiguousarray(self._embedder.embed(list(new.values())), "<f4")
            made = dict(zip(new, (vector.tobytes() for vector in vectors), strict=True))
            self._kept.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", made.items())
            self._kept.commit()
            found.update(made)
        return np.stack([np.frombuffer(found[digest], "<f4") for digest in digests]).astype(np.float32)

    def close(self) -> None:
        """Close the file."""
        self._kept.close()

    def _digest(self, text: str) -> bytes:
        named = f"{self.name}\0{text}".encode("utf-8", "surrogatepass")
        return hashlib.blake2b(named, digest_size=16).digest()
