"""Embeddings of any provider that litellm knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mrag_cli.ground.errors import ModelError
from mrag_cli.parts.llm.failures import Failure
from mrag_cli.parts.llm.transport import silent_litellm, translated

if TYPE_CHECKING:
    from collections.abc import Sequence

_ATTEMPTS = 4


def embed(model: str, texts: Sequence[str]) -> list[list[float]]:
    """Return the embedding of each text, in order.

    Args:
        model: litellm's name of the embedding model, ``provider/name``.
        texts: not empty.

    Raises:
        CallFailed: the provider refused these texts; fewer at a time may be taken.
        ModelError: the provider refused or could not be reached; what a rerun needs is said.
    """
    litellm = silent_litellm()
    try:
        answer = litellm.embedding(model=model, input=list(texts), num_retries=_ATTEMPTS - 1, timeout=120)
    except Exception as error:  # noqa: BLE001 - providers' errors have no common class
        failed = translated(error)
        if failed.failure in (Failure.REFUSED, Failure.TOO_LONG):
            raise failed from None
        raise ModelError(f"{model}: {failed}; check the model's name and the provider's key") from None
    found = sorted(answer.data, key=lambda entry: entry["index"])
    if len(found) != len(texts):
        raise ModelError(f"{model}: {len(found)} embeddings came for {len(texts)} texts")
    return [entry["embedding"] for entry in found]
