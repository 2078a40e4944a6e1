"""Vectors that are made once."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mrag_cli.parts.evaluation.vectors import KeptVectors


class Lengths:
    """Embeds a text as its length and one, and remembers what it was asked."""

    def __init__(self, name: str = "lengths") -> None:
        self.name = name
        self.asked: list[str] = []

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return a row for each text."""
        self.asked.extend(texts)
        return np.array([[len(text), 1] for text in texts], np.float32)


def test_a_text_is_embedded_once() -> None:
    """Texts that came before, or come twice, are not embedded again; rows keep the order asked for."""
    embedder = Lengths()
    kept = KeptVectors(embedder, None)
    assert kept.embed(["one", "three", "one"])[:, 0].tolist() == [3, 5, 3]
    assert kept.embed(["three", "seventh"])[:, 0].tolist() == [5, 7]
    assert sorted(embedder.asked) == ["one", "seventh", "three"]


def test_vectors_outlast_the_run(tmp_path: Path) -> None:
    """A file keeps them for the next run, for the same embedder only."""
    path = tmp_path / "new" / "vectors.sqlite"
    first = KeptVectors(Lengths(), path)
    first.embed(["one", "two"])
    first.close()
    again, other = Lengths(), Lengths("another")
    assert KeptVectors(again, path).embed(["two", "one"]).tolist() == [[3, 1], [3, 1]]
    assert again.asked == []
    KeptVectors(other, path).embed(["one"])
    assert other.asked == ["one"]


def test_many_texts_are_looked_up_in_parts() -> None:
    """More texts than one look-up takes come back whole."""
    texts = [f"{number:0{number % 7 + 1}}" for number in range(1300)]
    kept = KeptVectors(Lengths(), None)
    kept.embed(texts[:700])
    assert kept.embed(texts)[:, 0].tolist() == [len(text) for text in texts]
