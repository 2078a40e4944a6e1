from hypothesis import given
from hypothesis import strategies as st

from mrag_cli.parts.coverage import CONTINUOUS, SCATTERED, SINGLE, coverage, gaps, shape, uncovered_units
from mrag_cli.records.models import Marker

_POINTERS = st.sets(st.integers(1, 30), min_size=1).map(sorted)


def _markers(*pointers: tuple[int, ...]) -> list[Marker]:
    return [Marker("d", "key", "value", each, "llm") for each in pointers]


def test_coverage_is_the_share_of_units_pointed_to() -> None:
    """Units that several markers share count once, and pointers out of range for nothing."""
    assert coverage(_markers((1, 2), (2,), (4, 9)), 4) == 0.75
    assert uncovered_units(_markers((1, 2), (2,), (4, 9)), 4) == [3]


def test_a_document_of_no_units_is_covered() -> None:
    """There is nothing to cover, so nothing is missing."""
    assert coverage([], 0) == 1.0
    assert coverage([], 3) == 0.0


def test_shapes() -> None:
    """Pointers are one unit, neighbours, or units with others between them."""
    assert [shape(pointers) for pointers in ([7], [2, 3, 4], [2, 4])] == [SINGLE, CONTINUOUS, SCATTERED]
    assert gaps([1, 2, 5, 6, 20]) == [3, 14]


@given(_POINTERS)
def test_only_scattered_pointers_have_gaps(pointers: list[int]) -> None:
    """A gap is what tells non-consecutive pointers from the others."""
    assert bool(gaps(pointers)) == (shape(pointers) == SCATTERED)
