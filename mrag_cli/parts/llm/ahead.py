"""Asynchronous work over an iterator, with results in the order of the input and a bounded look-ahead."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from typing import TYPE_CHECKING, TypeVar

from mrag_cli.ground.errors import LimitReached

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator
    from concurrent.futures import Future

T = TypeVar("T")
R = TypeVar("R")


def in_order(
    inputs: Iterable[T],
    work: Callable[[int, T], Awaitable[R]],
    ahead: int,
    close: Callable[[], Awaitable[None]],
) -> Iterator[R]:
    """Yield ``work(number, input)`` for each input, in input order, ``ahead`` at a time.

    The event loop runs in a thread of its own, so that reading the inputs and writing the results never holds
    up the work. When a limit is reached, the work under way may end before the error is raised (what it
    pays for is kept); at any other error, an interrupt included, it is cancelled.

    Args:
        inputs: read one at a time, in the caller's thread.
        work: called in the event loop with the input's number from 0.
        ahead: most inputs held.
        close: awaited in the event loop at the end.
    """
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="calls", daemon=True)
    thread.start()
    waiting: deque[Future[R]] = deque()

    async def begun(number: int, given: T) -> R:
        return await work(number, given)

    try:
        for number, given in enumerate(inputs):
            while len(waiting) >= ahead or (waiting and waiting[0].done()):
                yield waiting.popleft().result()
            waiting.append(asyncio.run_coroutine_threadsafe(begun(number, given), loop))
        while waiting:
            yield waiting.popleft().result()
    except LimitReached:
        for future in waiting:
            future.exception()
        raise
    finally:
        for future in waiting:
            future.cancel()
        asyncio.run_coroutine_threadsafe(_end(close), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _end(close: Callable[[], Awaitable[None]]) -> None:
    """Cancel what still runs and close."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await close()
