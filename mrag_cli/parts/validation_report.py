"""What validation found: of one marker, of one document, and of a whole stream."""

from __future__ import annotations

import heapq
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mrag_cli.parts.marker_statistics import CoverageTally, MarkerTally

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Finding:
    """A marker that is flagged or was dropped.

    Attributes:
        line: its line in the input; 0 for a marker that was not read.
        key: its key.
        flags: what is wrong with it.
        not_found: numbers, dates and names of its value that are nowhere in the document.
        rank: rank of its own value for its key among the document's, from 1; 0 when not judged.
        badness: sorts the worst last.
        dropped: it is not in the output.
    """

    line: int
    key: str
    flags: tuple[str, ...]
    not_found: tuple[str, ...] = ()
    rank: int = 0
    badness: tuple[int, int] = (0, 0)
    dropped: bool = False

    def json(self) -> dict[str, Any]:
        """Return the finding as a JSON object."""
        return {
            "line": self.line,
            "key": self.key,
            "flags": self.flags,
            "not_found": self.not_found,
            "rank": self.rank,
            "dropped": self.dropped,
        }


@dataclass(frozen=True, slots=True)
class DocumentReport:
    """What validation found in one document.

    Attributes:
        doc: its id.
        path: where it was read.
        line: line of its document record.
        units: number of its units.
        coverage: share of them (0 to 1) that markers other than fallback cover.
        below: the coverage is below the threshold.
        origins: the markers of the output by origin.
        repairs: number of repairs by kind.
        findings: the markers that are flagged or were dropped, worst first.
        failed: the document is not in the output.
    """

    doc: str
    path: str
    line: int
    units: int
    coverage: float
    below: bool
    origins: Mapping[str, MarkerTally]
    repairs: Mapping[str, int]
    findings: tuple[Finding, ...]
    failed: bool = False

    @property
    def fallbacks(self) -> int:
        """Number of fallback markers in the output."""
        return self.origins["fallback"].markers if "fallback" in self.origins else 0

    def json(self) -> dict[str, Any]:
        """Return the document's row of the report as a JSON object."""
        return {
            "doc": self.doc,
            "line": self.line,
            "units": self.units,
            "coverage_percent": round(100 * self.coverage, 2),
            "below_threshold": self.below,
            "failed": self.failed,
            "fallbacks": self.fallbacks,
            "origins": {origin: tally.row() for origin, tally in sorted(self.origins.items())},
            "repairs": dict(sorted(self.repairs.items())),
            "markers": [finding.json() for finding in self.findings],
        }


class Summary:
    """What validation found in a stream. Its size does not depend on the number of documents.

    Args:
        worst: how many of the worst markers to keep.
    """

    def __init__(self, worst: int = 20) -> None:
        self.documents = 0
        self.failed = 0
        self.coverage = CoverageTally()
        self.origins: dict[str, MarkerTally] = {}
        self.repairs: Counter[str] = Counter()
        self.flags: Counter[str] = Counter()
        self._keep = worst
        self._seen = 0
        self._worst: list[tuple[tuple[int, int], int, str, Finding]] = []

    def add(self, report: DocumentReport) -> None:
        """Count one document."""
        self.documents += 1
        self.failed += report.failed
        if report.units:
            self.coverage.add(report.coverage, report.units, report.fallbacks, below=report.below)
        for origin, tally in report.origins.items():
            self.origins.setdefault(origin, MarkerTally()).merge(tally)
        self.repairs.update(report.repairs)
        for finding in report.findings:
            self.flags.update(finding.flags)
            if any(finding.badness) and self._keep:
                # The number makes entries different, so that findings are never compared.
                self._seen += 1
                entry = (finding.badness, -self._seen, f"{report.path}:{finding.line}", finding)
                if len(self._worst) < self._keep:
                    heapq.heappush(self._worst, entry)
                else:
                    heapq.heappushpop(self._worst, entry)

    @property
    def all_markers(self) -> MarkerTally:
        """The markers of all origins together."""
        together = MarkerTally()
        for tally in self.origins.values():
            together.merge(tally)
        return together

    @property
    def worst_markers(self) -> list[tuple[str, Finding]]:
        """The worst markers of the stream with their places (``path:line``), worst first."""
        return [
            (place, finding)
            for _, _, place, finding in sorted(self._worst, key=lambda e: e[:3], reverse=True)
        ]

    def json(self) -> dict[str, Any]:
        """Return the totals as a JSON object."""
        return {
            "documents": self.documents,
            "failed": self.failed,
            "coverage": self.coverage.json(),
            "markers": {
                "all": self.all_markers.json(),
                **{origin: tally.json() for origin, tally in sorted(self.origins.items())},
            },
            "repairs": dict(sorted(self.repairs.items())),
            "flags": dict(sorted(self.flags.items())),
            "worst_markers": [{"place": place, **finding.json()} for place, finding in self.worst_markers],
        }
