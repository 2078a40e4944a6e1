from mrag_cli.parts.marker_statistics import MarkerTally
from mrag_cli.parts.validation_report import DocumentReport, Finding, Summary
from mrag_cli.records.models import Marker


def _report(number: int, *findings: Finding, units: int = 4, coverage: float = 0.5) -> DocumentReport:
    tally = MarkerTally()
    tally.add(Marker(f"d{number}", "k", "v", (1,), "fallback"), 2, 3)
    below, origins, repairs = coverage < 0.9, {"fallback": tally}, {"narrowed": 2}
    return DocumentReport(f"d{number}", "s.jsonl", number, units, coverage, below, origins, repairs, findings)


def _finding(line: int, badness: int) -> Finding:
    return Finding(line, f"key {line}", ("key-misses",), (), badness, (1, badness))


def test_the_worst_are_kept_and_no_more() -> None:
    """Of any number of findings the summary keeps the worst, worst first, the earlier one of equals."""
    summary = Summary(worst=3)
    for number, badness in enumerate([5, 9, 1, 9, 7], 1):
        summary.add(_report(number, _finding(number, badness)))
    assert [place for place, _ in summary.worst_markers] == ["s.jsonl:2", "s.jsonl:4", "s.jsonl:5"]
    assert summary.flags == {"key-misses": 5}


def test_totals_are_those_of_the_documents() -> None:
    """Coverage, fallbacks, repairs and markers add up; documents of no units have no coverage."""
    summary = Summary()
    for number, coverage in enumerate([0.5, 1.0], 1):
        summary.add(_report(number, coverage=coverage))
    summary.add(_report(3, units=0, coverage=1.0))
    totals = summary.json()
    assert totals["documents"] == 3
    assert totals["coverage"] == {
        "documents": 2,
        "units": 8,
        "mean_percent": 75.0,
        "variance": 625.0,
        "fallback_percent": 25.0,
        "below_threshold": 1,
    }
    assert totals["repairs"] == {"narrowed": 6}
    assert totals["markers"]["all"]["markers"] == totals["markers"]["fallback"]["markers"] == 3


def test_a_documents_row() -> None:
    """A row says where the document is, what it has and which markers are doubtful."""
    row = _report(7, _finding(9, 2)).json()
    assert (row["doc"], row["line"], row["coverage_percent"], row["fallbacks"]) == ("d7", 7, 50.0, 1)
    assert row["markers"] == [
        {"line": 9, "key": "key 9", "flags": ("key-misses",), "not_found": (), "rank": 2, "dropped": False}
    ]
