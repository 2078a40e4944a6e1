"""Cells -> the report: means, intervals, differences from the first system, retention, costs."""

from __future__ import annotations

import math
from statistics import median, pstdev
from typing import TYPE_CHECKING, Any

from mrag_cli.parts.evaluation.bootstrap import difference, interval

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mrag_cli.parts.evaluation.bootstrap import Interval
    from mrag_cli.parts.evaluation.cells import Cell, PlanScores
    from mrag_cli.parts.evaluation.datasets import Dataset
    from mrag_cli.parts.evaluation.systems import Plan, Spent

    Values = Mapping[str, Mapping[str, float]]

REPORT_FORMAT = 1
ALL = "all"
"""The scope of the macro means: every data set counts the same."""
MEASURES = ("answer_recall", "evidence_recall", "f1")
"""What a context, or an answer from it, is worth; after these come the rankings' measures."""
_QUERIES = (1, 10, 100, 1_000, 10_000, 100_000)


def report(
    datasets: Sequence[Dataset],
    systems: Sequence[str],
    cells: Sequence[Cell],
    settings: Mapping[str, Any],
    *,
    each_question: bool = False,
) -> dict[str, Any]:
    """Return everything that was measured as one JSON object.

    Args:
        datasets: the questions.
        systems: names, the one that the others are compared with first.
        cells: what was scored.
        settings: how, for the record.
        each_question: list every question's own scores too.
    """
    plain = [cell for cell in cells if cell.size == 0]
    scopes = [dataset.name for dataset in datasets]
    found: dict[str, Any] = {
        "format": REPORT_FORMAT,
        "settings": dict(settings),
        "datasets": [
            {
                "name": dataset.name,
                "questions": len(dataset.questions),
                "documents": len(dataset.sources),
                "digest": dataset.digest,
            }
            for dataset in datasets
        ],
        "systems": list(systems),
        "results": _results(scopes, systems, plain),
        "indexing": [_indexing(cell) for cell in plain],
        "amortised": _amortised(systems, plain),
        "distractors": _retention(scopes, systems, cells),
    }
    if each_question:
        found["questions"] = [_questions(cell) for cell in plain]
    return found


def _results(scopes: Sequence[str], systems: Sequence[str], cells: Sequence[Cell]) -> list[dict[str, Any]]:
    together = [*scopes, ALL] if len(scopes) > 1 else list(scopes)
    rows = []
    for scope in together:
        own = [cell for cell in cells if scope in (cell.dataset, ALL)]
        for system in systems:
            for plan in _plans(own, system):
                scores = _scores(own, system, plan)
                compared = _scores(own, systems[0], _counterpart(plan, _plans(own, systems[0])))
                rows.append(
                    {
                        "dataset": scope,
                        "system": system,
                        "retriever": plan.retriever,
                        "budget": plan.budget,
                        "order": plan.order,
                        "measures": _measures(scores, compared if system != systems[0] else {}),
                    }
                )
    return rows


def _plans(cells: Iterable[Cell], system: str) -> list[Plan]:
    found = [scores.plan for cell in cells if cell.system == system for scores in cell.scores]
    return list(dict.fromkeys(found))


def _counterpart(plan: Plan, plans: Sequence[Plan]) -> Plan | None:
    """Return the plan among ``plans`` that is compared with ``plan``: the same one, or with another order."""
    alike = [other for other in plans if (other.retriever, other.budget) == (plan.retriever, plan.budget)]
    return plan if plan in alike else alike[0] if alike else None


def _scores(cells: Iterable[Cell], system: str, plan: Plan | None) -> dict[str, PlanScores]:
    """Return a system's scores by data set."""
    return {
        cell.dataset: scores
        for cell in cells
        if cell.system == system
        for scores in cell.scores
        if scores.plan == plan
    }


def _measures(scores: Mapping[str, PlanScores], compared: Mapping[str, PlanScores]) -> dict[str, Any]:
    names = dict.fromkeys(name for own in scores.values() for name in own.values)
    found: dict[str, Any] = {}
    for name in names:
        values = {dataset: own.values[name] for dataset, own in scores.items() if name in own.values}
        if name == "milliseconds":
            found[name] = {"median": median([one for own in values.values() for one in own.values()])}
            continue
        entry = _shown(interval({dataset: list(own.values()) for dataset, own in values.items()}))
        others = {dataset: own.values[name] for dataset, own in compared.items() if name in own.values}
        if others and name != "tokens" and (gap := difference(values, others)) is not None:
            entry["versus_first"] = {**_shown(gap), "beyond_noise": gap.beyond_noise}
        if name == "f1" and (deviation := _deviation(scores.values())) is not None:
            entry["deviation"] = deviation
        found[name] = entry
    return found


def _shown(found: Interval | None) -> dict[str, Any]:
    if found is None:
        return {}
    return {
        "mean": round(found.mean, 6),
        "low": round(found.low, 6),
        "high": round(found.high, 6),
        "questions": found.count,
    }


def _deviation(scores: Iterable[PlanScores]) -> float | None:
    """Return the standard deviation of the repetitions' means, each over the data sets."""
    repeats = [own.repeats for own in scores if own.repeats]
    if not repeats or len({len(own) for own in repeats}) != 1:
        return None
    return round(float(pstdev([sum(means) / len(means) for means in zip(*repeats, strict=True)])), 6)


def _indexing(cell: Cell) -> dict[str, Any]:
    spent = cell.spent
    return {
        "dataset": cell.dataset,
        "system": cell.system,
        "documents": spent.documents,
        "markers": spent.markers,
        "seconds": round(spent.seconds, 3),
        "calls": spent.calls,
        "prompt_tokens": spent.prompt_tokens,
        "completion_tokens": spent.completion_tokens,
        "cost": spent.dollars,
        "unasked": cell.unasked,
        "ceiling": None if cell.ceiling is None else round(cell.ceiling, 6),
        "key_tokens": _lengths(spent.keys),
        "value_tokens": _lengths(spent.values),
    }


def _lengths(counts: Mapping[int, int]) -> dict[str, Any]:
    total = sum(counts.values())
    if not total:
        return {"mean": None, "deviation": None, "counts": {}}
    mean = sum(length * times for length, times in counts.items()) / total
    variance = sum(times * (length - mean) ** 2 for length, times in counts.items()) / total
    return {
        "mean": round(mean, 2),
        "deviation": round(math.sqrt(variance), 2),
        "counts": {str(length): times for length, times in sorted(counts.items())},
    }


def _amortised(systems: Sequence[str], cells: Sequence[Cell]) -> list[dict[str, Any]]:
    """Return Eq. 14: what a query costs when the index is made for so many, in seconds and US dollars."""
    rows = []
    for system in systems:
        own = [cell for cell in cells if cell.system == system]
        spent = _sum(cell.spent for cell in own)
        times = [
            value
            for cell in own
            for scores in cell.scores
            for value in scores.values.get("milliseconds", {}).values()
        ]
        online = median(times) / 1000 if times else 0.0
        rows.append(
            {
                "system": system,
                "documents": spent.documents,
                "indexing_seconds": round(spent.seconds, 3),
                "indexing_cost": spent.dollars,
                "query_seconds": round(online, 6),
                "by_queries": [
                    {
                        "queries": queries,
                        "seconds": round(spent.seconds / queries + online, 6),
                        "cost": None if spent.dollars is None else round(spent.dollars / queries, 8),
                    }
                    for queries in _QUERIES
                ],
            }
        )
    return rows


def _sum(several: Iterable[Spent]) -> Spent:
    from mrag_cli.parts.evaluation.systems import Spent

    total = Spent()
    for spent in several:
        total.add(spent)
    return total


def _retention(scopes: Sequence[str], systems: Sequence[str], cells: Sequence[Cell]) -> list[dict[str, Any]]:
    """Return the study of distractors: scores by the number of documents, and what is left of the first."""
    rows = []
    for scope in scopes:
        for system in systems:
            own = [
                cell for cell in cells if cell.size != 0 and (cell.dataset, cell.system) == (scope, system)
            ]
            for plan in _plans(own, system):
                first: dict[str, float] = {}
                for cell in own:
                    scores = _scores([cell], system, plan)
                    measures = _measures(scores, {})
                    for name, entry in measures.items():
                        if "mean" in entry and name != "tokens":
                            base = first.setdefault(name, entry["mean"])
                            entry["retention"] = round(entry["mean"] / base, 6) if base else None
                    rows.append(
                        {
                            "dataset": scope,
                            "system": system,
                            "documents": cell.size,
                            "retriever": plan.retriever,
                            "budget": plan.budget,
                            "order": plan.order,
                            "measures": measures,
                        }
                    )
    return rows


def _questions(cell: Cell) -> dict[str, Any]:
    return {
        "dataset": cell.dataset,
        "system": cell.system,
        "plans": [
            {
                "retriever": scores.plan.retriever,
                "budget": scores.plan.budget,
                "order": scores.plan.order,
                "values": scores.values,
            }
            for scores in cell.scores
        ],
    }
