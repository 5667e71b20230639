import asyncio
import threading

import pytest

from chassis.errors import Exhausted
from services.ingest.room import Room
from services.ingest.stop import Stop, Stopped

SECONDS = 10.0


class Work:
    """Goes on until it is asked to stop; tells when it began and when it ended."""

    def __init__(self) -> None:
        self.began = threading.Event()
        self.ended = threading.Event()

    def __call__(self, stop: Stop) -> None:
        self.began.set()
        try:
            while not self.ended.wait(0.001):
                stop.check()
        finally:
            self.ended.set()

    async def wait_until_it_began(self) -> None:
        assert await asyncio.to_thread(self.began.wait, SECONDS)

    async def wait_until_it_ended(self) -> None:
        assert await asyncio.to_thread(self.ended.wait, SECONDS)


async def leave(call: asyncio.Task[None]) -> None:
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call


async def test_work_ends_when_its_caller_leaves() -> None:
    work = Work()
    call = asyncio.create_task(Room().run(work))
    await work.wait_until_it_began()
    assert not work.ended.is_set()
    await leave(call)
    await work.wait_until_it_ended()


async def test_work_ends_when_its_time_is_over() -> None:
    work = Work()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await Room().run(work)
    await work.wait_until_it_ended()


async def test_more_work_than_there_is_room_for_waits_and_then_is_refused() -> None:
    room = Room(at_once=1, waiting=1)
    first, second = Work(), Work()
    calls = [asyncio.create_task(room.run(first)), asyncio.create_task(room.run(second))]
    await first.wait_until_it_began()
    with pytest.raises(Exhausted) as refused:
        await room.run(Work())
    assert (refused.value.reason, refused.value.retry_after) == ("NO_ROOM_TO_PREPARE", 2.0)
    assert not second.began.is_set()
    await leave(calls[0])
    await second.wait_until_it_began()
    await leave(calls[1])


async def test_a_place_is_free_once_its_work_has_ended_not_when_its_caller_left() -> None:
    room, go_on = Room(at_once=1), threading.Event()
    began, ended = asyncio.Event(), []
    loop = asyncio.get_running_loop()

    def stubborn(_: Stop) -> None:
        loop.call_soon_threadsafe(began.set)
        go_on.wait(SECONDS)
        ended.append("stubborn")

    call = asyncio.create_task(room.run(stubborn))
    await began.wait()
    await leave(call)
    following = asyncio.create_task(room.run(lambda _: ended.append("following")))
    await asyncio.sleep(0)
    go_on.set()
    await asyncio.wait_for(following, SECONDS)
    assert ended == ["stubborn", "following"]


async def test_many_callers_that_leave_hold_nobody_up() -> None:
    room = Room()
    abandoned = [asyncio.create_task(room.run(Work())) for _ in range(20)]
    await asyncio.sleep(0)
    for call in abandoned:
        await leave(call)
    assert await asyncio.wait_for(room.run(lambda _: "done"), SECONDS) == "done"


def test_what_was_not_asked_to_stop_goes_on() -> None:
    stop = Stop()
    stop.check()
    stop.ask()
    with pytest.raises(Stopped):
        stop.check()
