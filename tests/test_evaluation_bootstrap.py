"""The paired bootstrap against what is known of it."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrag_cli.parts.evaluation.bootstrap import difference, interval

SCORES = st.lists(st.floats(0, 1, width=32), min_size=1, max_size=30)


def test_the_interval_of_a_share_is_near_the_normal_approximation() -> None:
    """Of 400 answers of which half are right, the 95 % interval is about .5 plus or minus 1.96 * .025."""
    found = interval({"a": [0.0, 1.0] * 200})
    assert found is not None
    assert found.mean == 0.5
    assert found.count == 400
    assert found.low == pytest.approx(0.5 - 1.96 * 0.025, abs=0.006)
    assert found.high == pytest.approx(0.5 + 1.96 * 0.025, abs=0.006)


def test_data_sets_count_the_same_whatever_their_size() -> None:
    """The mean over data sets is the mean of their means."""
    found = interval({"large": [1.0] * 90, "small": [0.0] * 10, "empty": []})
    assert found is not None
    assert (found.mean, found.low, found.high, found.count) == (0.5, 0.5, 0.5, 100)


def test_no_value_gives_no_interval() -> None:
    """Where nothing was measured there is no mean."""
    assert interval({"a": [], "b": []}) is None
    assert difference({"a": {"1": 1.0}}, {"b": {"1": 1.0}}) is None


def test_differences_are_paired() -> None:
    """A small gain on every question is beyond noise, although the scores themselves spread widely."""
    baseline = {str(number): number / 50 for number in range(50)}
    better = {key: value + 0.01 for key, value in baseline.items()}
    gap = difference({"a": better}, {"a": baseline})
    assert gap is not None
    assert gap.mean == pytest.approx(0.01)
    assert gap.beyond_noise


def test_questions_that_only_one_system_was_asked_are_left_out() -> None:
    """A pair needs both of its halves."""
    gap = difference({"a": {"1": 1.0, "2": 1.0}}, {"a": {"2": 0.0, "3": 0.0}})
    assert gap is not None
    assert (gap.mean, gap.count) == (1.0, 1)


def test_one_question_gained_and_one_lost_is_noise() -> None:
    """A difference whose interval holds zero is not beyond noise."""
    gap = difference({"a": {"1": 1.0, "2": 0.0}}, {"a": {"1": 0.0, "2": 1.0}})
    assert gap is not None
    assert not gap.beyond_noise


@given(SCORES)
def test_the_interval_is_repeatable_and_within_the_values(values: list[float]) -> None:
    """Equal input gives equal bits, and no resample can leave the range of the values."""
    found = interval({"a": values})
    assert found == interval({"a": values})
    assert found is not None
    assert min(values) - 1e-9 <= found.low <= found.high <= max(values) + 1e-9
    assert math.isclose(found.mean, sum(values) / len(values), abs_tol=1e-9)
