"""How sure a mean and a difference are: the paired bootstrap over questions."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

RESAMPLES = 4000
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean with its interval.

    Attributes:
        mean: over the questions; of several data sets, the mean of their means.
        low: lower end of the 95 % interval.
        high: upper end.
        count: questions measured.
    """

    mean: float
    low: float
    high: float
    count: int

    @property
    def beyond_noise(self) -> bool:
        """Whether the interval leaves zero out; of use for differences."""
        return self.low > 0 or self.high < 0


def interval(values: Mapping[str, Sequence[float]]) -> Interval | None:
    """Return the macro mean of the values of one or more data sets, and its percentile interval.

    Questions are drawn with replacement within each data set, `RESAMPLES` times. The draws depend only on a
    data set's name and its number of values, so that equal input gives equal bits.

    Args:
        values: one value a question by data set; data sets without values are left out.

    Returns:
        None where there is no value at all.
    """
    measured = {name: np.asarray(own, np.float64) for name, own in values.items() if len(own)}
    if not measured:
        return None
    means = sum(_resampled(name, own) for name, own in measured.items()) / len(measured)
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    mean = sum(float(own.mean()) for own in measured.values()) / len(measured)
    return Interval(mean, float(low), float(high), sum(len(own) for own in measured.values()))


def difference(
    values: Mapping[str, Mapping[str, float]], baseline: Mapping[str, Mapping[str, float]]
) -> Interval | None:
    """Return how much better ``values`` are than ``baseline`` on the questions that both have.

    Args:
        values: value by question id, by data set.
        baseline: the same of the system compared with.
    """
    pairs = {
        name: [own[key] - baseline[name][key] for key in own if key in baseline[name]]
        for name, own in values.items()
        if name in baseline
    }
    return interval(pairs)


def _resampled(name: str, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean of each resample: float64, (RESAMPLES,)."""
    random = np.random.default_rng([zlib.crc32(name.encode()), len(values)])
    means = np.empty(RESAMPLES)
    # A block at a time, so that memory stays small for many questions.
    step = max(1, 4_000_000 // len(values))
    for start in range(0, RESAMPLES, step):
        rows = min(step, RESAMPLES - start)
        drawn = random.integers(0, len(values), (rows, len(values)))
        means[start : start + rows] = values[drawn].mean(axis=1)
    return means
