"""The prefix of a chunk (PFX of the paper's Eq. 4): in its key, and once a segment above packed values."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mrag_cli.parts.chop.cnm import Cnm

ID_REPEATS = 3
"""How often an id stands in a key: often enough to outweigh the words that sibling products share."""


def key_of(cnm: Cnm, section: Sequence[str], chunk: str) -> str:
    """Return ``x = PFX(M) || C`` (Eq. 4), the text that is indexed, with the ids behind it.

    Args:
        cnm: the chunk's.
        section: the headings above it; the last two are named, unless the nouns say them.
        chunk: its text.
    """
    said = "\n".join(cnm.nouns).casefold()
    named = [heading for heading in section[-2:] if heading.casefold() not in said]
    parts = [
        header_of(cnm),
        "; ".join(cnm.nouns),
        " > ".join(named),
        chunk,
        # An embedder that reads only so many tokens need not spend them on words it cannot know.
        " ".join(name for name in cnm.ids for _ in range(ID_REPEATS)),
    ]
    return "\n".join(filter(None, parts))


def header_of(cnm: Cnm) -> str:
    """Return ``[category: model]``, shown once above a segment's packed values; empty for neither."""
    named = [part for part in (cnm.category, cnm.model) if part]
    return f"[{': '.join(named)}]" if named else ""
