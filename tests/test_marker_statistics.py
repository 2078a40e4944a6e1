import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrag_cli.parts.marker_statistics import CoverageTally, MarkerTally, Tally
from mrag_cli.records.models import Marker

_NUMBERS = st.lists(st.integers(0, 2000), min_size=1, max_size=60)


def _tally(numbers: list[int]) -> Tally:
    tally = Tally()
    for number in numbers:
        tally.add(number)
    return tally


@given(_NUMBERS)
def test_the_moments_are_those_of_the_numbers(numbers: list[int]) -> None:
    """Mean, deviation and quantiles are exact, and the histogram counts every number once."""
    tally = _tally(numbers)
    assert tally.mean == pytest.approx(statistics.fmean(numbers))
    assert tally.deviation == pytest.approx(statistics.pstdev(numbers))
    assert tally.quantile(0.5) == statistics.median_low(numbers)
    assert tally.quantile(1) == max(numbers)
    assert sum(times for _, _, times in tally.histogram()) == len(numbers)


@given(_NUMBERS, _NUMBERS)
def test_merging_is_counting_both(first: list[int], second: list[int]) -> None:
    """Two tallies merged equal one of all numbers."""
    merged = _tally(first)
    merged.merge(_tally(second))
    assert merged.json() == _tally(first + second).json()


def test_nothing_has_no_moments() -> None:
    """An empty tally is zeros and an empty histogram, not an error."""
    assert Tally().json()["histogram"] == []
    assert (Tally().mean, Tally().deviation, Tally().quantile(0.9)) == (0.0, 0.0, 0)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40))
def test_coverage_has_mean_and_variance(shares: list[float]) -> None:
    """Mean and variance are those of the documents' coverage, the variance in per cent squared."""
    tally = CoverageTally()
    for share in shares:
        tally.add(share, 10, 1, below=share < 0.5)
    assert tally.mean == pytest.approx(statistics.fmean(shares), abs=1e-9)
    assert tally.variance == pytest.approx(10_000 * statistics.pvariance(shares), abs=1e-6)
    assert tally.fallback_share == pytest.approx(0.1)
    assert tally.below == sum(share < 0.5 for share in shares)


def test_markers_are_counted_by_shape() -> None:
    """A row of the table counts pointers by shape and gaps by size."""
    tally = MarkerTally()
    for pointers in ((1,), (1, 2), (1, 4), (2, 5)):
        tally.add(Marker("d", "k", "v", pointers, "llm"), 3, 9)
    row = tally.json()
    assert row["pointers"] == {"single": 1, "continuous": 1, "non-consecutive": 2}
    assert row["gaps"] == {"3": 2}
    assert (row["key_tokens"]["mean"], row["value_tokens"]["mean"]) == (3, 9)
