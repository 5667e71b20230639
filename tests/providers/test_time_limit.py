"""Waits that end together, whoever else ends them."""

import asyncio
import time

import pytest

from providers.time_limit import TimeLimit


def hold_up(seconds: float) -> None:
    """What a loop does not get on with."""
    time.sleep(seconds)


async def test_a_wait_ends_with_the_time_and_the_task_goes_on() -> None:
    limit = TimeLimit(0.02)
    with limit:
        await asyncio.sleep(0)
    with pytest.raises(TimeoutError), limit:
        await asyncio.sleep(60)
    assert limit.over
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    await asyncio.sleep(0)


async def test_time_that_ends_between_two_waits_cancels_nothing_and_no_wait_begins() -> None:
    limit, begun = TimeLimit(0.01), False
    await asyncio.sleep(0.03)
    with pytest.raises(TimeoutError), limit:
        begun = True
    assert not begun


async def test_time_is_over_even_while_something_holds_up_the_loop() -> None:
    limit = TimeLimit(0.01)
    hold_up(0.02)
    assert limit.over
    limit.close()


async def test_a_task_that_somebody_cancels_is_cancelled() -> None:
    limit = TimeLimit(60)

    async def waiting() -> None:
        with limit:
            await asyncio.sleep(60)

    task = asyncio.create_task(waiting())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not limit.over
    limit.close()


async def test_a_task_that_is_cancelled_at_the_end_of_its_time_is_cancelled() -> None:
    limit = TimeLimit(0.01)

    async def waiting() -> None:
        with limit:
            await asyncio.sleep(60)

    task = asyncio.create_task(waiting())
    await asyncio.sleep(0)
    hold_up(0.02)
    asyncio.get_running_loop().call_later(0, task.cancel)
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_an_error_of_the_wait_passes() -> None:
    limit = TimeLimit(60)
    with pytest.raises(KeyError), limit:
        raise KeyError
    limit.close()
