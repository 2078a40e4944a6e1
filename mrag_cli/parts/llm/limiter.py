"""How many calls run at once, and when none may: shared by all callers of a client."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_LONGEST_PAUSE = 60.0


class Limiter:
    """Lets callers through in order of importance, at most so many at once.

    When a server says that it is overloaded, all callers pause until it may be asked again, and fewer of them
    are let through at once afterwards; every reply that comes widens the way again.

    Args:
        width: most calls at once.
        clock: returns seconds; a test may pass its own.
    """

    def __init__(self, width: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = width
        self._width = float(width)
        self._clock = clock
        self._running = 0
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._arrivals = itertools.count()
        self._resume_at = 0.0
        self._overloads = 0
        self._alarm: asyncio.TimerHandle | None = None

    async def acquire(self, order: int = 0) -> None:
        """Wait for a place; among those that wait, the smallest ``order`` goes first."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (order, next(self._arrivals), turn))
        self._admit()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.release()
            raise

    def release(self) -> None:
        """Give the place back."""
        self._running -= 1
        self._admit()

    def answered(self) -> None:
        """Note that the server answered well."""
        self._overloads = 0
        self._width = min(self._most, self._width + 1 / self._width)

    def overloaded(self, retry_after: float | None) -> None:
        """Note that the server asks for less: nobody is let through for a while.

        Args:
            retry_after: seconds the server named, or None; else the pause doubles from one second.
        """
        now = self._clock()
        if now >= self._resume_at:
            # The calls that were under way fail together: they count once.
            self._overloads += 1
            self._width = max(1.0, self._width / 2)
        pause = retry_after if retry_after is not None else min(_LONGEST_PAUSE, 2.0 ** (self._overloads - 1))
        self._resume_at = max(self._resume_at, now + pause)

    def _admit(self) -> None:
        pause = self._resume_at - self._clock()
        if pause > 0:
            if self._waiting and self._alarm is None:
                self._alarm = asyncio.get_running_loop().call_later(pause, self._wake)
            return
        while self._waiting and self._running < int(self._width):
            _, _, turn = heapq.heappop(self._waiting)
            if not turn.done():
                self._running += 1
                turn.set_result(None)

    def _wake(self) -> None:
        self._alarm = None
        self._admit()
