"""Filters on documents, applied before anything is ranked."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mrag_cli.ground.errors import UsageError
from mrag_cli.parts.ranking import Masks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mrag_cli.parts.store.snapshot import Snapshot
    from mrag_cli.records.models import Document


class Filters(NamedTuple):
    """Which documents a query may use.

    Attributes:
        globs: patterns of document ids, of which one must match; none lets all through.
        where: names and values of ``meta``, all of which must be there.
    """

    globs: tuple[str, ...] = ()
    where: tuple[tuple[str, str], ...] = ()

    @classmethod
    def parse(cls, globs: Sequence[str], where: Sequence[str]) -> Filters:
        """Return filters from the command line's ``--doc GLOB`` and ``--where name=value``.

        Raises:
            UsageError: a ``--where`` has no ``=``, or nothing before it.
        """
        pairs = [text.partition("=")[::2] for text in where]
        for text, (name, _) in zip(where, pairs, strict=True):
            if "=" not in text or not name.strip():
                raise UsageError(f"--where {text}: name=value is expected")
        return cls(tuple(globs), tuple((name.strip(), value.strip()) for name, value in pairs))

    def masks(self, snapshot: Snapshot) -> Masks | None:
        """Return which markers of ``snapshot`` pass; None when all do. Reads every document record."""
        if not self.globs and not self.where:
            return None
        found = []
        for segment in snapshot.segments:
            allowed = np.zeros(segment.entry.rows.markers, np.bool_)
            for row in segment.live_document_rows().tolist():
                if self._passes(segment.document(row)):
                    allowed[segment.first_markers[row] : segment.first_markers[row + 1]] = True
            found.append(allowed)
        return Masks(tuple(found))

    def _passes(self, document: Document) -> bool:
        if self.globs and not any(fnmatchcase(document.doc, glob) for glob in self.globs):
            return False
        return all(value in _values(document.meta.get(name)) for name, value in self.where)


def _values(found: object) -> list[str]:
    """Return how a ``meta`` value is written on a command line; a list matches by any of its members."""
    if isinstance(found, list):
        return [value for member in found for value in _values(member)]
    if found is None:
        return []
    return [str(found).lower()] if isinstance(found, bool) else [str(found)]
