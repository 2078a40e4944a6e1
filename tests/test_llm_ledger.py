import asyncio

import pytest

from mrag_cli.ground.errors import LimitReached
from mrag_cli.parts.llm.ledger import Ledger, dollars
from mrag_cli.parts.llm.request import Reply, Usage


def paid(cost: float | None, *, cached: int = 0) -> Reply:
    """Return a reply that cost so much."""
    return Reply("text", "stop", Usage(prompt=100, completion=10, cached=cached), cost)


def test_the_call_that_would_pass_the_number_is_refused() -> None:
    """--max-calls 2 lets two calls through and names itself at the third."""

    async def body() -> None:
        ledger = Ledger(max_calls=2)
        for _ in range(2):
            await ledger.reserve(None)
            ledger.settle(None, paid(None))
        with pytest.raises(LimitReached, match="--max-calls 2"):
            await ledger.reserve(None)
        assert ledger.counts.calls == 2

    asyncio.run(body())


def test_the_call_that_could_pass_the_cost_is_refused_before_it_is_made() -> None:
    """A call is refused when the most it can cost does not fit what is left."""

    async def body() -> None:
        ledger = Ledger(max_cost=1.0)
        await ledger.reserve(0.9)
        ledger.settle(0.9, paid(0.5))
        with pytest.raises(LimitReached, match=r"--max-cost 1, of which \$0.5000 is spent"):
            await ledger.reserve(0.6)
        await asyncio.sleep(0)
        assert ledger.counts.cost == 0.5

    asyncio.run(body())


def test_concurrent_calls_wait_for_each_other_rather_than_pass_the_cost_together() -> None:
    """A reservation in the way is waited for; when it was settled for less, the next call goes on."""

    async def body() -> None:
        ledger = Ledger(max_cost=1.0)
        await ledger.reserve(0.8)
        second = asyncio.create_task(ledger.reserve(0.8))
        await asyncio.sleep(0.01)
        assert not second.done()
        ledger.settle(0.8, paid(0.1))
        await asyncio.wait_for(second, 1)
        third = asyncio.create_task(ledger.reserve(0.8))
        await asyncio.sleep(0.01)
        ledger.settle(0.8, paid(0.7))
        with pytest.raises(LimitReached):
            await third
        assert ledger.counts.cost <= 1.0

    asyncio.run(body())


def test_after_a_limit_no_call_is_let_through() -> None:
    """A smaller call that would still fit is refused too, so that a run ends at one place."""

    async def body() -> None:
        ledger = Ledger(max_cost=1.0)
        with pytest.raises(LimitReached):
            await ledger.reserve(2.0)
        with pytest.raises(LimitReached):
            await ledger.reserve(0.0)

    asyncio.run(body())


def test_a_call_that_brought_nothing_costs_nothing() -> None:
    """A failed call gives its reservation back."""

    async def body() -> None:
        ledger = Ledger(max_cost=1.0)
        for _ in range(5):
            await ledger.reserve(0.9)
            ledger.settle(0.9, None)
        assert ledger.counts.cost == 0
        assert ledger.counts.calls == 5
        assert ledger.counts.replies == 0

    asyncio.run(body())


def test_the_report_adds_up_and_an_unknown_price_is_null() -> None:
    """Tokens are summed, cached ones apart; one unpriced reply makes the cost unknown."""

    async def body() -> None:
        ledger = Ledger()
        for cost in (0.25, 0.5):
            await ledger.reserve(None)
            ledger.settle(None, paid(cost, cached=60))
        report = ledger.report()
        assert report["cost"] == 0.75
        assert report["prompt_tokens"] == 200
        assert report["cached_tokens"] == 120
        assert report["completion_tokens"] == 20
        await ledger.reserve(None)
        ledger.settle(None, paid(None))
        assert ledger.report()["cost"] is None

    asyncio.run(body())


def test_amounts_are_written_for_people() -> None:
    """Small amounts keep four decimals, and the unknown is said."""
    assert dollars(0.00123) == "$0.0012"
    assert dollars(12.345) == "$12.35"
    assert dollars(None) == "an unknown price"
