"""Systems' plans, and what indexes cost together."""

from contextlib import nullcontext
from typing import Any

from mrag_cli.parts.evaluation.systems import Plan, Spent, System

PLANS = [
    Plan(retriever, 128, order) for retriever in ("bm25", "dense") for order in ("similarity", "position")
]


def _system(**others: Any) -> System:
    return System("x", {}, lambda _collection: nullcontext(), lambda _contexts: Spent(), **others)  # type: ignore[arg-type,return-value]


def test_a_system_without_limits_follows_every_plan() -> None:
    """Plans are followed as they are given."""
    assert _system().plans(PLANS) == PLANS


def test_a_system_with_one_order_follows_each_plan_once() -> None:
    """Plans that differ in the order alone are one plan to it."""
    assert _system(order="position").plans(PLANS) == [
        Plan("bm25", 128, "position"),
        Plan("dense", 128, "position"),
    ]


def test_a_system_has_its_own_retrievers() -> None:
    """Retrievers that a system does not have are left out."""
    assert {plan.retriever for plan in _system(retrievers=("dense",)).plans(PLANS)} == {"dense"}


def test_what_indexes_took_adds_up() -> None:
    """Numbers and lengths are summed; one unknown price makes the sum unknown."""
    total = Spent(seconds=1, calls=1, dollars=0.5, markers=2, keys={3: 1})
    total.add(
        Spent(seconds=2, calls=3, dollars=0.25, markers=1, documents=1, keys={3: 2, 5: 1}, values={1: 1})
    )
    assert total == Spent(
        seconds=3, calls=4, dollars=0.75, markers=3, documents=1, keys={3: 3, 5: 1}, values={1: 1}
    )
    total.add(Spent(dollars=None))
    assert total.dollars is None
    total.add(Spent(dollars=1.0))
    assert total.dollars is None
