"""The figures."""

from pathlib import Path

from evaluations import cell, dataset

from mrag_cli.parts.evaluation.plots import draw
from mrag_cli.parts.evaluation.report import report
from mrag_cli.parts.evaluation.systems import Plan, Spent

SCORES = {
    "answer_recall": {"q0": 1.0, "q1": 0.0, "q2": 1.0},
    "milliseconds": {"q0": 2.0},
    "tokens": {"q0": 3.0},
}


def test_every_figure_is_drawn_twice_and_repeatably(tmp_path: Path) -> None:
    """Each figure is a PNG and an SVG, the SVG the same bytes every time."""
    spent = Spent(seconds=1, calls=3, prompt_tokens=10, documents=2, keys={8: 2, 20: 1}, values={40: 3})
    cells = [
        cell("a", system, SCORES, plan=Plan("bm25", budget, "similarity"), size=size, spent=spent)
        for system in ("mrag", "fixed")
        for budget in (128, 384)
        for size in (0, 1, None)
    ]
    found = report([dataset("a")], ["mrag", "fixed"], cells, {})
    points = {"key": [[0, 0]], "value": [[1, 1]], "question": [[0, 1]]}
    found["geometry"] = {"dataset": "a", "document": "d0", "systems": [{"system": "mrag", "points": points}]}
    files = draw(found, tmp_path / "new" / "plots")
    names = {"budget-answer_recall", "retention-answer_recall", "latency", "cost", "lengths", "geometry"}
    assert {file.stem for file in files} == names
    assert {file.suffix for file in files} == {".png", ".svg"}
    assert all(file.stat().st_size > 1000 for file in files)
    for again in draw({**found, "distractors": [], "indexing": []}, tmp_path / "again"):
        if again.suffix == ".svg":
            assert again.read_bytes() == (tmp_path / "new" / "plots" / again.name).read_bytes()


def test_a_report_without_scores_has_no_figure(tmp_path: Path) -> None:
    """Where nothing was measured, nothing is drawn."""
    assert draw({"results": [], "indexing": [], "distractors": [], "systems": []}, tmp_path) == []
