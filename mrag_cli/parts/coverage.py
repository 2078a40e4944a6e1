"""Which units a document's markers cover, and how their pointers lie."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mrag_cli.records.models import Marker

SINGLE = "single"
CONTINUOUS = "continuous"
SCATTERED = "non-consecutive"
SHAPES = (SINGLE, CONTINUOUS, SCATTERED)
"""The columns of the paper's Table IV: one unit, neighbouring units, units with others between them."""


def covered_units(markers: Iterable[Marker], units: int) -> set[int]:
    """Return the numbers from 1 to ``units`` that some marker points to."""
    return {pointer for marker in markers for pointer in marker.pointers if 1 <= pointer <= units}


def uncovered_units(markers: Iterable[Marker], units: int) -> list[int]:
    """Return the numbers from 1 to ``units`` that no marker points to, ascending."""
    covered = covered_units(markers, units)
    return [number for number in range(1, units + 1) if number not in covered]


def coverage(markers: Iterable[Marker], units: int) -> float:
    """Return the share of a document's units that its markers point to (Eq. 9).

    Pointers out of range count for nothing. A document of no units is covered: the share is 1.
    """
    return len(covered_units(markers, units)) / units if units else 1.0


def shape(pointers: Sequence[int]) -> str:
    """Return which of `SHAPES` an ascending, non-empty list of different unit numbers has."""
    if len(pointers) == 1:
        return SINGLE
    return CONTINUOUS if pointers[-1] - pointers[0] == len(pointers) - 1 else SCATTERED


def gaps(pointers: Sequence[int]) -> list[int]:
    """Return the distances over 1 between neighbours of an ascending list of unit numbers."""
    return [later - earlier for earlier, later in pairwise(pointers) if later - earlier > 1]
