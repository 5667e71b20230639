"""The time limit of a decision."""

import asyncio
from itertools import count

import pytest

from capacity.watchdog import Watchdog
from tests.capacity.leaping import Loop, leaping

LIMIT = 0.05
MANY = 20  # stand-stills of the loop


async def watched(watchdog: Watchdog, work: asyncio.Future[str]) -> str:
    task = watchdog.begin()
    try:
        return await work
    except asyncio.CancelledError:
        if not watchdog.end(task):
            raise
        return "overdue"
    finally:
        watchdog.end(task)


def never() -> asyncio.Future[str]:
    return asyncio.get_running_loop().create_future()


def now() -> float:
    return asyncio.get_running_loop().time()


@leaping
async def test_a_call_that_outlasts_the_limit_is_cut_and_its_task_goes_on() -> None:
    assert await watched(Watchdog(LIMIT), never()) == "overdue"
    assert now() == pytest.approx(LIMIT)
    assert not asyncio.current_task().cancelling()  # type: ignore[union-attr] # a test is a task


@leaping
async def test_each_call_has_its_own_limit() -> None:
    watchdog, ends = Watchdog(LIMIT), list[float]()

    async def call(begins: float) -> None:
        await asyncio.sleep(begins)
        assert await watched(watchdog, never()) == "overdue"
        ends.append(now())

    await asyncio.gather(call(0), call(LIMIT / 2))
    assert ends == pytest.approx([LIMIT, LIMIT * 3 / 2])


@leaping
async def test_a_call_that_ended_is_let_be() -> None:
    watchdog, done = Watchdog(LIMIT), never()
    done.set_result("answer")
    assert await watched(watchdog, done) == "answer"
    await asyncio.sleep(2 * LIMIT)
    assert not watchdog._overdue


@pytest.mark.parametrize("moment", [0, LIMIT])
@leaping
async def test_who_cancels_the_task_is_heard(moment: float) -> None:
    task = asyncio.create_task(watched(Watchdog(LIMIT), never()))
    await asyncio.sleep(0)
    asyncio.get_running_loop().call_later(moment, task.cancel)
    await asyncio.wait([task])
    assert task.cancelled() or (moment and task.result() == "overdue")


@leaping
async def test_a_task_that_cleans_up_after_its_cancellation_has_the_limit_too() -> None:
    watchdog = Watchdog(LIMIT)

    async def work() -> str:
        try:
            return await never()
        except asyncio.CancelledError:
            return await watched(watchdog, never())

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    task.cancel()
    assert await task == "overdue"


@leaping
async def test_an_answer_that_came_while_the_loop_stood_still_is_read() -> None:
    watchdog, loop = Watchdog(LIMIT), asyncio.get_running_loop()
    answer = never()
    task = asyncio.create_task(watched(watchdog, answer))
    await asyncio.sleep(0)
    loop.call_soon(_stand_still)
    # Read some rounds after the loop goes on, like from a socket.
    loop.call_later(LIMIT * 3 + 0.01, answer.set_result, "answer")
    assert await task == "answer"


@leaping
async def test_the_limit_is_renewed_once_and_no_more() -> None:
    watchdog, loop = Watchdog(LIMIT), asyncio.get_running_loop()
    task = asyncio.create_task(watched(watchdog, never()))
    stood = count(1)

    def again() -> None:
        if not task.done() and next(stood) < MANY:
            _stand_still()
            loop.call_later(LIMIT / 2, again)

    loop.call_soon(again)
    assert await task == "overdue"
    assert next(stood) < MANY / 2


def _stand_still() -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, Loop)
    loop.now += 3 * LIMIT
