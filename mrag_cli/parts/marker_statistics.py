"""The numbers of a validation report: the paper's Tables III and IV and its Fig. 5.

Everything is counted as it passes, so memory depends on the number of distinct lengths and origins alone.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any

from mrag_cli.parts.coverage import SHAPES, gaps, shape

if TYPE_CHECKING:
    from mrag_cli.records.models import Marker

_EDGES = (8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 512)


class Tally:
    """Whole numbers of at least 0, counted exactly by value."""

    __slots__ = ("counts",)

    def __init__(self) -> None:
        self.counts: Counter[int] = Counter()

    def add(self, number: int) -> None:
        """Count one more ``number``."""
        self.counts[number] += 1

    @property
    def size(self) -> int:
        """How many numbers were counted."""
        return self.counts.total()

    @property
    def mean(self) -> float:
        """The arithmetic mean; 0 of nothing."""
        size = self.size
        return sum(number * times for number, times in self.counts.items()) / size if size else 0.0

    @property
    def deviation(self) -> float:
        """The population standard deviation; 0 of nothing."""
        size, mean = self.size, self.mean
        if not size:
            return 0.0
        return math.sqrt(sum((number - mean) ** 2 * times for number, times in self.counts.items()) / size)

    def quantile(self, share: float) -> int:
        """Return the least number that at least ``share`` of all (0 to 1) do not exceed; 0 of nothing."""
        wanted = max(1, math.ceil(share * self.size))
        passed = 0
        for number in sorted(self.counts):
            passed += self.counts[number]
            if passed >= wanted:
                return number
        return 0

    def histogram(self) -> list[tuple[int, int | None, int]]:
        """Return ``(least, greatest or None, times)`` of widening ranges, without empty ones at the end."""
        bounds = [(low + 1, high) for low, high in zip((-1, *_EDGES), _EDGES, strict=False)]
        bars: list[tuple[int, int | None, int]] = [
            (low, high, sum(times for number, times in self.counts.items() if low <= number <= high))
            for low, high in bounds
        ]
        bars.append(
            (_EDGES[-1] + 1, None, sum(t for number, t in self.counts.items() if number > _EDGES[-1]))
        )
        while bars and not bars[-1][2]:
            bars.pop()
        return bars

    def merge(self, other: Tally) -> None:
        """Count everything that ``other`` counted."""
        self.counts.update(other.counts)

    def json(self) -> dict[str, Any]:
        """Return mean, standard deviation, median, 90th percentile, range and histogram as a JSON object."""
        return {
            "mean": round(self.mean, 2),
            "sd": round(self.deviation, 2),
            "median": self.quantile(0.5),
            "p90": self.quantile(0.9),
            "least": min(self.counts, default=0),
            "greatest": max(self.counts, default=0),
            "histogram": [{"from": low, "to": high, "count": times} for low, high, times in self.histogram()],
        }


class MarkerTally:
    """The markers of one origin: the shapes of their pointers, the tokens of their keys and values."""

    __slots__ = ("gaps", "keys", "markers", "shapes", "values")

    def __init__(self) -> None:
        self.markers = 0
        self.shapes: Counter[str] = Counter()
        self.gaps = Tally()
        self.keys = Tally()
        self.values = Tally()

    def add(self, marker: Marker, key_tokens: int, value_tokens: int) -> None:
        """Count one marker that points to at least one unit."""
        self.markers += 1
        self.shapes[shape(marker.pointers)] += 1
        for gap in gaps(marker.pointers):
            self.gaps.add(gap)
        self.keys.add(key_tokens)
        self.values.add(value_tokens)

    def merge(self, other: MarkerTally) -> None:
        """Count everything that ``other`` counted."""
        self.markers += other.markers
        self.shapes.update(other.shapes)
        for own, its in ((self.gaps, other.gaps), (self.keys, other.keys), (self.values, other.values)):
            own.merge(its)

    def row(self) -> dict[str, Any]:
        """Return the counts without distributions, for one document, as a JSON object."""
        return {
            "markers": self.markers,
            "pointers": {name: self.shapes[name] for name in SHAPES},
            "key_tokens_mean": round(self.keys.mean, 2),
            "value_tokens_mean": round(self.values.mean, 2),
        }

    def json(self) -> dict[str, Any]:
        """Return a row of Table IV, the gaps by size and the lengths in tokens as a JSON object."""
        return {
            "markers": self.markers,
            "pointers": {name: self.shapes[name] for name in SHAPES},
            "gaps": {str(size): times for size, times in sorted(self.gaps.counts.items())},
            "key_tokens": self.keys.json(),
            "value_tokens": self.values.json(),
        }


class CoverageTally:
    """Coverage of documents that have units, before fallback (the paper's Table III)."""

    __slots__ = ("_spread", "below", "documents", "fallbacks", "mean", "units")

    def __init__(self) -> None:
        self.documents = 0
        self.units = 0
        self.fallbacks = 0
        self.below = 0
        self.mean = 0.0
        self._spread = 0.0

    def add(self, share: float, units: int, fallbacks: int, *, below: bool) -> None:
        """Count one document: coverage (0 to 1), units, fallback markers, and if it missed the threshold."""
        self.documents += 1
        self.units += units
        self.fallbacks += fallbacks
        self.below += below
        # Welford's recurrence: exact enough over any number of documents, nothing kept.
        difference = share - self.mean
        self.mean += difference / self.documents
        self._spread += difference * (share - self.mean)

    @property
    def variance(self) -> float:
        """The population variance of coverage in per cent, as in Table III."""
        return 10_000 * self._spread / self.documents if self.documents else 0.0

    @property
    def fallback_share(self) -> float:
        """Fallback markers a unit."""
        return self.fallbacks / self.units if self.units else 0.0

    def json(self) -> dict[str, Any]:
        """Return Table III's row, in per cent, as a JSON object."""
        return {
            "documents": self.documents,
            "units": self.units,
            "mean_percent": round(100 * self.mean, 2) if self.documents else None,
            "variance": round(self.variance, 4),
            "fallback_percent": round(100 * self.fallback_share, 2),
            "below_threshold": self.below,
        }
