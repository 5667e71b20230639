"""Waits that end together, whoever else ends them."""

import asyncio

import pytest

from providers.time_limit import TimeLimit


def never() -> asyncio.Future[None]:
    return asyncio.get_running_loop().create_future()


async def test_a_wait_ends_with_the_time_and_the_task_goes_on() -> None:
    limit, task = TimeLimit(0.02), asyncio.current_task()
    with limit:
        await asyncio.sleep(0)
    with pytest.raises(TimeoutError), limit:
        await never()
    assert limit.over
    assert task is not None
    assert task.cancelling() == 0
    await asyncio.sleep(0)


async def test_time_that_ends_between_two_waits_cancels_nothing_and_no_wait_begins() -> None:
    limit, begun = TimeLimit(60), False
    limit._ring()
    with pytest.raises(TimeoutError), limit:
        begun = True
    assert not begun
    limit.close()


async def test_time_is_over_even_while_something_holds_up_the_loop() -> None:
    moments = iter((0.0, 0.9, 1.0))
    limit = TimeLimit(1, clock=lambda: next(moments))
    assert [limit.over, limit.over] == [False, True]
    limit.close()


async def test_a_task_that_somebody_cancels_is_cancelled() -> None:
    limit = TimeLimit(60)

    async def waiting() -> None:
        with limit:
            await never()

    task = asyncio.create_task(waiting())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not limit.over
    limit.close()


async def test_a_task_that_is_cancelled_at_the_end_of_its_time_is_cancelled() -> None:
    limit = TimeLimit(60)

    async def waiting() -> None:
        with limit:
            await never()

    task = asyncio.create_task(waiting())
    await asyncio.sleep(0)
    limit._ring()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    limit.close()


async def test_an_error_of_the_wait_passes() -> None:
    limit = TimeLimit(60)
    with pytest.raises(KeyError), limit:
        raise KeyError
    limit.close()
