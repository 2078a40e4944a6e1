"""The tables."""

import io
from typing import Any

from evaluations import cell, dataset
from rich.console import Console as RichConsole

from mrag_cli.cli.eval_view import markdown, render, tables
from mrag_cli.parts.evaluation.report import report
from mrag_cli.parts.evaluation.systems import Plan, Spent

GOOD = {
    "answer_recall": {f"q{number}": 1.0 for number in range(20)},
    "hit@1": {"q0": 1.0},
    "mrr@10": {"q0": 1.0},
    "tokens": {"q0": 120.0},
    "milliseconds": {"q0": 2.5},
}
BAD = {**GOOD, "answer_recall": {f"q{number}": float(number % 4 == 0) for number in range(20)}}
MIDDLE = {**GOOD, "answer_recall": {f"q{number}": float(number % 2 == 0) for number in range(20)}}


def _report(**others: Any) -> dict[str, Any]:
    cells = [cell("a|b", "mrag", GOOD), cell("a|b", "fixed", BAD), cell("a|b", "semantic", MIDDLE)]
    return report([dataset("a|b")], ["mrag", "fixed", "semantic"], [*cells, *others.pop("more", [])], {})


def test_markdown_marks_the_best_the_second_and_what_is_beyond_noise() -> None:
    """The best is bold, the second in italics, and a triangle says what is beyond noise."""
    shown = markdown(_report())
    assert "### Answer recall" in shown
    assert "| a\\|b | mrag | 20 | **1.000** |" in shown
    assert "| a\\|b | semantic | 20 | _.500_ ▼ |" in shown
    assert "| a\\|b | fixed | 20 | .250 ▼ |" in shown
    assert "worse than mrag beyond noise" in shown
    assert "| mrag | bm25 | 128 | similarity | 120.0 | 2.50 |" in shown


def test_a_table_that_would_be_empty_is_left_out() -> None:
    """Without a model there is neither F1 nor money to show, without a study no retention."""
    titles = [table.title for table in tables(_report())]
    assert titles == ["Answer recall", "Ranking", "Queries", "Indexing"]


def test_orders_are_told_apart_where_there_are_several() -> None:
    """A system measured in two orders has two rows, named by them."""
    more = [cell("a|b", "dos", GOOD, plan=Plan("bm25", 128, "position"))]
    cells = [cell("a|b", "mrag", GOOD), cell("a|b", "mrag", BAD, plan=Plan("bm25", 128, "position")), *more]
    shown = markdown(report([dataset("a|b")], ["mrag", "dos"], cells, {}))
    assert "mrag (similarity)" in shown
    assert "mrag (position)" in shown
    assert "dos (position)" in shown


def test_retention_and_costs_have_tables() -> None:
    """The study shows scores with what is left of the first; Eq. 14 is shown once an index costs money."""
    more = [cell("a|b", "mrag", GOOD, size=1), cell("a|b", "mrag", BAD, size=None)]
    shown = markdown(_report(more=more))
    assert "| data set | system | retriever | budget | order | 1 | all |" in shown
    assert "| 1.000 (100 %) | .250 (25 %) |" in shown
    paid = [cell("a", "mrag", GOOD, spent=Spent(seconds=1, calls=2, dollars=0.5, documents=2))]
    shown = markdown(report([dataset("a")], ["mrag"], paid, {}))
    assert "Eq. 14" in shown
    assert "0.005000" in shown
    assert "0.5000" in shown


def test_repetitions_show_their_deviation() -> None:
    """F1 is shown as mean ± deviation."""
    own = [cell("a", "mrag", {"f1": {"q0": 0.5}}, repeats=(0.4, 0.6))]
    assert "**.500 ± .100**" in markdown(report([dataset("a")], ["mrag"], own, {}))


def test_the_terminal_shows_bars_and_no_markup() -> None:
    """On a terminal marks become styles, a bar shows the last column, and names are never markup."""
    screen = io.StringIO()
    cells = [cell("[red]x", "mrag", GOOD), cell("[red]x", "fixed", BAD)]
    found = report([dataset("[red]x")], ["mrag", "fixed"], cells, {})
    render(found, RichConsole(file=screen, width=120, markup=False, highlight=False, emoji=False))
    shown = screen.getvalue()
    assert "[red]x" in shown
    assert "**" not in shown
    assert "████████████" in shown
    assert "███ " in shown
    assert "▼" in shown
