import io

from rich.console import Console

from mrag_cli.cli.validate_view import one_line, render
from mrag_cli.parts.marker_statistics import MarkerTally
from mrag_cli.parts.validation_report import DocumentReport, Finding, Summary
from mrag_cli.records.models import Marker


def _summary(key: str = "What is it?") -> Summary:
    tally = MarkerTally()
    for pointers, size in (((1,), 40), ((1, 2), 60), ((1, 20), 80)):
        tally.add(Marker("d", key, "v", pointers, "llm"), 20, size)
    finding = Finding(3, key, ("key-misses", "ungrounded"), ("1999",), 4, (1, 4))
    summary = Summary()
    summary.add(
        DocumentReport("d", "s.jsonl", 1, 20, 0.15, True, {"llm": tally}, {"narrowed": 1}, (finding,))
    )
    return summary


def _drawn(summary: Summary) -> str:
    screen = io.StringIO()
    render(
        summary,
        Console(file=screen, width=140, markup=False, highlight=False, emoji=False, force_terminal=True),
    )
    return screen.getvalue()


def test_one_line_has_all_that_was_found() -> None:
    """The summary's line has counts, coverage, repairs and flags."""
    assert one_line(_summary()) == (
        "1 document, 3 markers; coverage 15.00 % before fallback, 0 fallback markers (0.00 %); "
        "repaired: narrowed 1; found: key-misses 1, ungrounded 1"
    )
    assert one_line(Summary()) == "0 documents, 0 markers"


def test_the_tables_have_the_papers_numbers() -> None:
    """Coverage with its variance, pointers by shape, lengths, and the worst markers are drawn."""
    drawn = _drawn(_summary())
    for cell in ("15.00", "1 (33.3 %)", "60.0", "16.3", "s.jsonl:3", "(rank 4)", "not found: 1999", "███"):
        assert cell in drawn


def test_a_documents_text_is_never_markup() -> None:
    """Brackets, emoji names and control characters of a key are shown as they are, controls spelled out."""
    drawn = _drawn(_summary("[red]a[/] :warning: \x1b[2J"))
    assert "[red]a[/] :warning: \\x1b[2J" in drawn


def test_an_empty_summary_can_be_drawn() -> None:
    """No document is no reason to fail."""
    assert "Coverage" in _drawn(Summary())
