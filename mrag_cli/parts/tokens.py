"""Token counting. The only module that touches tiktoken.

The encoding's vocabulary is read from a folder on disk: litellm ships it under the names that tiktoken's
cache uses, so that counting needs no network.
"""

from __future__ import annotations

import os
from array import array
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from mrag_cli.ground.errors import MragError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import tiktoken
    from numpy.typing import NDArray

ENCODING = "cl100k_base"
"""The encoding that every count and every budget is in."""

SEPARATOR = "\n\n"
"""What stands between two values of a packed context."""


@lru_cache(maxsize=1)
def encoding() -> tiktoken.Encoding:
    """Return the encoding, loaded once (0.1 s).

    Raises:
        MragError: its vocabulary is neither in litellm's folder, nor cached, nor can it be fetched.
    """
    if "TIKTOKEN_CACHE_DIR" not in os.environ:
        spec = find_spec("litellm")
        for location in (spec.submodule_search_locations or []) if spec else []:
            folder = Path(location) / "litellm_core_utils" / "tokenizers"
            if folder.is_dir():
                os.environ["TIKTOKEN_CACHE_DIR"] = str(folder)
    import tiktoken

    try:
        return tiktoken.get_encoding(ENCODING)
    except Exception as error:
        raise MragError(
            f"the vocabulary of {ENCODING} cannot be loaded ({error}); "
            "reinstall litellm, or set TIKTOKEN_CACHE_DIR"
        ) from error


def count(text: str) -> int:
    """Return the number of tokens of ``text``; text that looks like a special token is text."""
    return len(encoding().encode_ordinary(text))


def counts(texts: Sequence[str]) -> list[int]:
    """Return the number of tokens of each text."""
    encode = encoding().encode_ordinary
    return [len(encode(text)) for text in texts]


def boundaries(text: str) -> list[int]:
    """Return the offset in ``text``, in code points, at which each of its tokens starts.

    A token that begins inside a character starts where that character does.
    """
    loaded = encoding()
    return loaded.decode_with_offsets(loaded.encode_ordinary(text))[1] if text else []


def tokens_before(text: str) -> Sequence[int]:
    """Return, for each offset in ``text`` from 0 to its length, how many of its tokens end at or before it.

    Offsets are code points; a token that ends inside a character ends where that character does. Four bytes
    a character.
    """
    import numpy as np

    found = encoding().encode_to_numpy(text, allowed_special=set(), disallowed_special=())
    ends = np.cumsum(_token_bytes()[found], dtype=np.intc)
    if not text.isascii():
        begins = (np.frombuffer(text.encode(), dtype=np.uint8) & 0xC0) != 0x80
        ends = np.cumsum(begins, dtype=np.intc)[ends - 1]
    steps = np.diff(ends, prepend=np.intc(0), append=np.intc(len(text) + 1))
    return array("i", np.repeat(np.arange(len(ends) + 1, dtype=np.intc), steps).tobytes())


@lru_cache(maxsize=1)
def _token_bytes() -> NDArray[np.uint8]:
    """The number of bytes of each token, by its number; no ordinary token has more than 255."""
    import numpy as np

    loaded = encoding()
    ordinary = len(loaded.token_byte_values())
    lengths = [len(token) for token in loaded.decode_tokens_bytes(range(ordinary))]
    return np.array(lengths, dtype=np.uint8)
