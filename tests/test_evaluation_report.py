"""Cells to the report."""

import orjson
import pytest
from evaluations import cell, dataset

from mrag_cli.parts.evaluation.report import ALL, report
from mrag_cli.parts.evaluation.systems import Plan, Spent

GOOD = {"answer_recall": {f"q{number}": 1.0 for number in range(20)}, "milliseconds": {"q0": 2.0, "q1": 4.0}}
BAD = {"answer_recall": {f"q{number}": float(number % 4 == 0) for number in range(20)}}


def test_rows_are_compared_with_the_first_system() -> None:
    """Each system's means and their distance from the first system's are there, over all data sets too."""
    cells = [
        cell("a", "mrag", GOOD),
        cell("b", "mrag", GOOD),
        cell("a", "fixed", BAD),
        cell("b", "fixed", GOOD),
    ]
    found = report([dataset("a"), dataset("b")], ["mrag", "fixed"], cells, {"corpus": False})
    rows = {(row["dataset"], row["system"]): row["measures"] for row in found["results"]}
    assert rows["a", "mrag"]["answer_recall"]["mean"] == 1.0
    assert "versus_first" not in rows["a", "mrag"]["answer_recall"]
    assert rows["a", "fixed"]["answer_recall"]["versus_first"]["mean"] == -0.75
    assert rows["a", "fixed"]["answer_recall"]["versus_first"]["beyond_noise"]
    assert not rows["b", "fixed"]["answer_recall"]["versus_first"]["beyond_noise"]
    assert rows[ALL, "fixed"]["answer_recall"]["mean"] == 0.625
    assert rows["a", "mrag"]["milliseconds"] == {"median": 3.0}
    assert found["settings"] == {"corpus": False}
    assert orjson.loads(orjson.dumps(found)) == found


def test_one_data_set_has_no_mean_over_all() -> None:
    """A macro mean of one data set would say nothing new."""
    found = report([dataset("a")], ["mrag"], [cell("a", "mrag", GOOD)], {})
    assert {row["dataset"] for row in found["results"]} == {"a"}


def test_a_system_with_one_order_is_compared_with_the_first_order_there_is() -> None:
    """DOS lays out by position only; it is compared with the first system's layout of the same budget."""
    cells = [
        cell("a", "mrag", GOOD),
        cell("a", "dos", BAD, plan=Plan("bm25", 128, "position")),
        cell("a", "late", BAD, plan=Plan("bm25", 256, "position")),
    ]
    rows = report([dataset("a")], ["mrag", "dos", "late"], cells, {})["results"]
    assert rows[1]["measures"]["answer_recall"]["versus_first"]["mean"] == -0.75
    assert "versus_first" not in rows[2]["measures"]["answer_recall"]


def test_repetitions_give_a_deviation() -> None:
    """The deviation of F1 is that of the repetitions' means."""
    own = cell("a", "mrag", {"f1": {"q0": 0.5}}, repeats=(0.4, 0.6))
    entry = report([dataset("a")], ["mrag"], [own], {})["results"][0]["measures"]["f1"]
    assert (entry["mean"], entry["deviation"]) == (0.5, 0.1)


def test_retention_is_what_is_left_of_the_first_size() -> None:
    """Scores among more documents are divided by the score among one."""
    small = cell("a", "mrag", GOOD, size=1)
    large = cell("a", "mrag", BAD, size=None)
    first, last = report([dataset("a")], ["mrag"], [small, large], {})["distractors"]
    assert first["measures"]["answer_recall"]["retention"] == 1.0
    assert (last["documents"], last["measures"]["answer_recall"]["retention"]) == (None, 0.25)
    none = {"answer_recall": {"q0": 0.0}}
    (first,) = report([dataset("a")], ["mrag"], [cell("a", "mrag", none, size=1)], {})["distractors"]
    assert first["measures"]["answer_recall"]["retention"] is None


def test_cost_is_spread_over_queries() -> None:
    """Eq. 14: the index's cost divided by the queries, and each query's own."""
    spent = Spent(seconds=10.0, calls=5, dollars=2.0, documents=5)
    found = report([dataset("a")], ["mrag"], [cell("a", "mrag", GOOD, spent=spent)], {})
    (row,) = found["amortised"]
    assert row["query_seconds"] == 0.003
    by = {entry["queries"]: entry for entry in row["by_queries"]}
    assert by[1]["seconds"] == pytest.approx(10.003)
    assert (by[1000]["seconds"], by[1000]["cost"]) == (0.013, 0.002)
    unknown = Spent(seconds=1.0, calls=1, dollars=None)
    (row,) = report([dataset("a")], ["mrag"], [cell("a", "mrag", GOOD, spent=unknown)], {})["amortised"]
    assert row["by_queries"][0]["cost"] is None


def test_lengths_and_ceiling_are_reported() -> None:
    """Key and value lengths have mean and deviation; the ceiling says what some marker holds at all."""
    own = cell("a", "mrag", GOOD, spent=Spent(keys={2: 1, 4: 1}, values={}), ceiling=0.9, unasked=3)
    (entry,) = report([dataset("a")], ["mrag"], [own], {})["indexing"]
    assert entry["key_tokens"] == {"mean": 3.0, "deviation": 1.0, "counts": {"2": 1, "4": 1}}
    assert entry["value_tokens"]["mean"] is None
    assert (entry["ceiling"], entry["unasked"]) == (0.9, 3)


def test_each_question_is_listed_when_asked_for() -> None:
    """The single scores are in the report only when they are wanted."""
    cells = [cell("a", "mrag", GOOD)]
    assert "questions" not in report([dataset("a")], ["mrag"], cells, {})
    (listed,) = report([dataset("a")], ["mrag"], cells, {}, each_question=True)["questions"]
    assert listed["plans"][0]["values"]["answer_recall"]["q3"] == 1.0
