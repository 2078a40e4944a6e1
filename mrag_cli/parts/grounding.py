"""Whether the numbers, dates and names of a value are in the text it was made from."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mrag_cli.records.models import DocumentGroup

_NUMBER = re.compile(r"\d+")


class Evidence:
    """What a document says, read as far as it is asked for."""

    def __init__(self, group: DocumentGroup) -> None:
        self._group = group
        self._numbers: set[str] | None = None

    def not_found(self, value: str, pointers: Sequence[int]) -> tuple[str, ...]:
        """Return the claims of ``value`` that neither its units nor the document hold."""
        if not self._group.units or any(value in self._group.units[p - 1].text for p in pointers):
            return ()
        if self._numbers is None:
            self._numbers = set()
            for unit in self._group.units:
                self._numbers.update(_NUMBER.findall(unit.text), *map(_NUMBER.findall, unit.heading))
            self._numbers.update(_NUMBER.findall(self._group.document.title))
        return tuple(n for n in dict.fromkeys(_NUMBER.findall(value)) if n not in self._numbers)
