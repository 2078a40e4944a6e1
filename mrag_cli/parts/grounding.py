"""Whether the numbers, dates and names of a value are in the text that it was made from.

An alarm is a claim that the document does not make in any spelling known here: ``1,000`` and ``一千``,
``4 March 2021`` and ``2021-03-04``, ``Italian`` and ``Italy``, ``US`` and ``United States`` are the same.
Other words that differ from the document's are no alarm: a value may be a paraphrase.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from mrag_cli.parts.names import Names
from mrag_cli.parts.quantities import Quantities, normalised, read

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mrag_cli.records.models import DocumentGroup

# Words up to "twelve" also count what a text merely lists ("three sons").
_COUNTED_IN_WORDS = frozenset(map(str, range(13)))


_JOINING = tuple(".,'’-–/")


class Evidence:
    """What one document says: its units, their headings and its title. Read when it is first asked.

    Args:
        group: the document with its units.
    """

    def __init__(self, group: DocumentGroup) -> None:
        self._group = group

    @cached_property
    def _passages(self) -> list[str]:
        title = self._group.document.title
        texts = ("\n".join([*unit.heading, unit.text]) for unit in self._group.units)
        return [normalised(title), *map(normalised, texts)]

    @cached_property
    def _names(self) -> Names:
        return Names(self._passages)

    @cached_property
    def _quantities(self) -> Quantities:
        return Quantities("\n".join(self._passages))

    def not_found(self, value: str, pointers: Sequence[int]) -> tuple[str, ...]:
        """Return the numbers, dates and names of ``value`` that the document does not have.

        A value cut from its units has none, and a document without unit records cannot be asked.

        Args:
            value: the value.
            pointers: its units, in range.
        """
        units = self._group.units
        if not units or any(value in units[pointer - 1].text for pointer in pointers):
            return ()
        if "".join(value.split()) in "".join(
            "".join(units[pointer - 1].text.split()) for pointer in pointers
        ):
            return ()
        text = normalised(value)
        dates, numbers = read(text)
        own = "\n".join(self._passages[pointer] for pointer in pointers)
        result = [
            date.text
            for date in dates
            if not (_stands_in(date.text, own) or self._quantities.holds_date(date))
        ]
        for number in numbers:
            if any(date.start <= number.start < date.end for date in dates):
                continue
            if number.worded and _COUNTED_IN_WORDS.issuperset(number.readings[0]):
                continue
            if not (_stands_in(number.text, own) or self._quantities.holds_number(number)):
                result.append(number.text)
        for name in self._names.missing(text):
            if not self._quantities.month_named(name.lower()) and not any(name in claim for claim in result):
                result.append(name)
        return tuple(dict.fromkeys(result))


def _stands_in(claim: str, passage: str) -> bool:
    """Tell whether a claim stands in a passage as it is, and not as a part of a longer one.

    Nearly every claim does, so that the document's own claims are seldom needed.
    """
    start = passage.find(claim)
    while start >= 0:
        before, after = passage[start - 1 : start], passage[start + len(claim) : start + len(claim) + 2]
        joined = before.isalnum() or before in _JOINING or after[:1].isalnum()
        if not joined and not (after[:1] in _JOINING and after[1:].isalnum()):
            return True
        start = passage.find(claim, start + 1)
    return False
