import asyncio
import threading
import time

import pytest

from mrag_cli.ground.errors import LimitReached
from mrag_cli.parts.llm.ahead import in_order


async def nothing() -> None:
    """Close nothing."""


def test_results_come_in_the_order_of_the_input() -> None:
    """The slowest first input is still the first result."""

    async def work(number: int, given: str) -> str:
        await asyncio.sleep(0.05 if number == 0 else 0)
        return given * 2

    assert list(in_order("abcdef", work, 3, nothing)) == ["aa", "bb", "cc", "dd", "ee", "ff"]


def test_no_more_than_the_look_ahead_is_read_before_the_first_result() -> None:
    """Memory stays flat: the input is read as results are taken."""
    read: list[int] = []

    def inputs() -> object:
        for number in range(100):
            read.append(number)
            yield number

    async def work(_number: int, given: int) -> int:
        return given

    results = in_order(inputs(), work, 5, nothing)  # type: ignore[arg-type]
    assert next(results) == 0
    assert len(read) <= 6
    results.close()  # type: ignore[attr-defined]


def test_work_goes_on_while_the_input_blocks() -> None:
    """Calls under way end although the next input has not come."""
    ended = threading.Event()

    def inputs() -> object:
        yield 1
        assert ended.wait(5), "the work did not go on"
        yield 2

    async def work(_number: int, given: int) -> int:
        await asyncio.sleep(0.01)
        ended.set()
        return given

    assert list(in_order(inputs(), work, 5, nothing)) == [1, 2]  # type: ignore[arg-type]


def test_a_limit_lets_what_is_under_way_end() -> None:
    """Work that was paid for is finished before the limit is raised."""
    finished: list[int] = []
    all_begun = asyncio.Event()

    async def work(number: int, _given: int) -> int:
        if number == 0:
            await all_begun.wait()
            raise LimitReached("enough")
        if number == 2:
            all_begun.set()
        await asyncio.sleep(0.05)
        finished.append(number)
        return number

    with pytest.raises(LimitReached):
        list(in_order(range(3), work, 5, nothing))
    assert finished == [1, 2]


def test_any_other_error_cancels_what_is_under_way_and_closes() -> None:
    """An error stops the rest at once, and the connections are closed."""
    cancelled, closed = [], []
    all_begun = asyncio.Event()

    async def work(number: int, _given: int) -> int:
        if number == 0:
            await all_begun.wait()
            raise ValueError("broken")
        if number == 2:
            all_begun.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.append(number)
            raise
        return number

    async def close() -> None:
        closed.append(True)

    start = time.monotonic()
    with pytest.raises(ValueError, match="broken"):
        list(in_order(range(3), work, 5, close))
    assert time.monotonic() - start < 10
    assert cancelled == [1, 2]
    assert closed == [True]


def test_an_abandoned_iteration_leaves_no_thread() -> None:
    """Closing the iterator early ends its event loop."""

    async def work(_number: int, given: int) -> int:
        return given

    before = threading.active_count()
    results = in_order(range(100), work, 5, nothing)
    next(results)
    results.close()  # type: ignore[attr-defined]
    assert threading.active_count() == before
