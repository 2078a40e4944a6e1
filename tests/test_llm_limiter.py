import asyncio
from collections.abc import Awaitable, Callable

from mrag_cli.parts.llm.limiter import Limiter


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


def run(body: Callable[[], Awaitable[None]]) -> None:
    """Run a test's coroutine with a time limit."""

    async def limited() -> None:
        async with asyncio.timeout(10):
            await body()

    asyncio.run(limited())


def test_at_most_the_width_run_at_once() -> None:
    """The limiter never lets more through than it may."""

    async def body() -> None:
        limiter, running, most = Limiter(3), 0, 0

        async def call() -> None:
            nonlocal running, most
            await limiter.acquire()
            running += 1
            most = max(most, running)
            await asyncio.sleep(0.001)
            running -= 1
            limiter.release()

        await asyncio.gather(*(call() for _ in range(20)))
        assert most == 3

    run(body)


def test_the_smallest_order_goes_first() -> None:
    """Among those that wait, the earliest document's calls go first, then the order of arrival."""

    async def body() -> None:
        limiter, passed = Limiter(1), []
        await limiter.acquire()

        async def call(order: int, name: str) -> None:
            await limiter.acquire(order)
            passed.append(name)
            limiter.release()

        waiting = [asyncio.create_task(call(*given)) for given in ((5, "c"), (1, "a"), (5, "d"), (2, "b"))]
        await asyncio.sleep(0)
        limiter.release()
        await asyncio.gather(*waiting)
        assert passed == ["a", "b", "c", "d"]

    run(body)


def test_an_overloaded_server_holds_up_everyone_until_the_time_it_named() -> None:
    """Nobody passes before Retry-After is over, then the waiting do."""

    async def body() -> None:
        limiter = Limiter(4)
        await limiter.acquire()
        limiter.overloaded(0.15)
        limiter.release()
        start = asyncio.get_running_loop().time()
        await asyncio.gather(*(limiter.acquire() for _ in range(2)))
        assert asyncio.get_running_loop().time() - start >= 0.14

    run(body)


def test_calls_that_fail_together_halve_the_width_once_and_replies_widen_it_again() -> None:
    """A burst of refusals counts as one; each good reply gives a little back."""

    async def body() -> None:
        clock = Clock()
        limiter = Limiter(8, clock)
        for _ in range(8):
            await limiter.acquire()
        for _ in range(8):
            limiter.overloaded(None)
            limiter.release()
        clock.now += 1.1
        for _ in range(4):
            await limiter.acquire()
        late = asyncio.create_task(limiter.acquire())
        await asyncio.sleep(0)
        assert not late.done()
        for _ in range(5):
            limiter.answered()
        limiter.release()
        await late

    run(body)


def test_without_a_named_delay_the_pause_doubles() -> None:
    """One second, then two, then four, until a reply comes and it is one again."""

    async def passes(limiter: Limiter) -> bool:
        call = asyncio.create_task(limiter.acquire())
        for _ in range(3):
            await asyncio.sleep(0)
        if passed := call.done():
            limiter.release()
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        return passed

    async def body() -> None:
        clock = Clock()
        limiter = Limiter(2, clock)
        for pause in (1, 2, 4, 1):
            limiter.overloaded(None)
            clock.now += pause - 0.01
            assert not await passes(limiter)
            clock.now += 0.02
            assert await passes(limiter)
            if pause == 4:
                limiter.answered()

    run(body)


def test_a_caller_that_gives_up_waiting_takes_no_place() -> None:
    """Cancelling a waiting caller leaves its place to the next."""

    async def body() -> None:
        limiter = Limiter(1)
        await limiter.acquire()
        gone = asyncio.create_task(limiter.acquire())
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.gather(gone, return_exceptions=True)
        limiter.release()
        await asyncio.wait_for(limiter.acquire(), 1)

    run(body)
