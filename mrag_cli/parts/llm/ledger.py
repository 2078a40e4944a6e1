"""What calls were made and what they cost, and the limits that stop the next one."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mrag_cli.ground.errors import LimitReached

if TYPE_CHECKING:
    from mrag_cli.parts.llm.request import Reply, Usage


@dataclass(slots=True)
class Counts:
    """Totals of calls; mutable, because they grow while the calls are made.

    Attributes:
        calls: requests sent, repeated ones included.
        retries: requests sent again after a failure.
        replies: replies received and paid for.
        cached_replies: replies that the cache, or a call already under way, gave.
        failures: requests given up.
        prompt_tokens: as the provider reported them, cached ones included.
        cached_tokens: of those, held by the provider's prompt cache.
        completion_tokens: as the provider reported them.
        cost: US dollars of the replies whose price is known.
        unpriced: replies whose price is unknown.
    """

    calls: int = 0
    retries: int = 0
    replies: int = 0
    cached_replies: int = 0
    failures: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0
    unpriced: int = 0


class Ledger:
    """Counts calls and refuses the one that would pass a limit.

    A call is reserved at the most it can cost before it is made, and settled at what it did cost. A call that
    only the reservations of others stand against waits until those are settled.

    Args:
        max_calls: most requests sent, retries included; None for no limit.
        max_cost: most US dollars; None for no limit.
    """

    def __init__(self, *, max_calls: int | None = None, max_cost: float | None = None) -> None:
        self.counts = Counts()
        self._max_calls = max_calls
        self._max_cost = max_cost
        self._reserved = 0.0
        self._open = 0
        self._settled = asyncio.Event()
        self._reached: str | None = None

    async def reserve(self, most: float | None) -> None:
        """Take the right to one call that costs at most ``most`` US dollars (None: unknown).

        Raises:
            LimitReached: the call would pass ``max_calls`` or ``max_cost``, or an earlier one would have.
        """
        while True:
            self._refuse_if_reached()
            if self._max_calls is not None and self.counts.calls >= self._max_calls:
                self._reached = f"--max-calls {self._max_calls} is reached"
            elif self._passes(most):
                if self._open:
                    self._settled.clear()
                    await self._settled.wait()
                    continue
                self._reached = (
                    f"the next call may cost {dollars(most)} and would pass --max-cost {self._max_cost:g}, "
                    f"of which {dollars(self.counts.cost)} is spent"
                )
            self._refuse_if_reached()
            break
        self.counts.calls += 1
        self._open += 1
        self._reserved += most or 0.0

    def _passes(self, most: float | None) -> bool:
        if self._max_cost is None or most is None:
            return False
        return self.counts.cost + self._reserved + most > self._max_cost

    def _refuse_if_reached(self) -> None:
        if self._reached:
            raise LimitReached(
                f"{self._reached}; what was paid for is kept: run again with a higher limit to go on"
            )

    def settle(self, most: float | None, reply: Reply | None) -> None:
        """End a reserved call: ``reply`` is what came, None when nothing did."""
        self._open -= 1
        self._reserved = self._reserved - (most or 0.0) if self._open else 0.0
        if reply is not None:
            self.counts.replies += 1
            self._add(reply.usage)
            if reply.cost is None:
                self.counts.unpriced += 1
            else:
                self.counts.cost += reply.cost
        self._settled.set()

    def _add(self, usage: Usage) -> None:
        self.counts.prompt_tokens += usage.prompt
        self.counts.cached_tokens += usage.cached
        self.counts.completion_tokens += usage.completion

    def report(self) -> dict[str, Any]:
        """Return the totals as a JSON object; ``cost`` is null when a price is unknown."""
        counts = self.counts
        return {
            "calls": counts.calls,
            "retries": counts.retries,
            "replies": counts.replies,
            "cached_replies": counts.cached_replies,
            "failures": counts.failures,
            "prompt_tokens": counts.prompt_tokens,
            "cached_tokens": counts.cached_tokens,
            "completion_tokens": counts.completion_tokens,
            "cost": None if counts.unpriced else counts.cost,
        }


def dollars(amount: float | None) -> str:
    """Return an amount for people: ``$0.0123``, or that it is unknown."""
    if amount is None:
        return "an unknown price"
    return f"${amount:.4f}" if amount < 1 else f"${amount:.2f}"
