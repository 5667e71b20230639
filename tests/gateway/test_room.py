"""Seats, and the line before them: in order of arrival, bounded in number and in time."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest
from redis import Redis

from chassis.errors import SluiceError
from gateway.admission import Room, Waiting
from tests.capacity.server import Server
from tests.gateway.house import ALL, House, gateway, served, until
from tests.gateway.open_door import Everywhere
from tests.gateway.test_capacity import capacity


async def test_a_seat_and_its_place_come_back_however_the_question_ends() -> None:
    places = Everywhere()
    room = Room(1, places)
    with pytest.raises(ZeroDivisionError):
        async with room.seat():
            raise ZeroDivisionError
    async with room.seat():
        with pytest.raises(SluiceError) as refused:
            async with room.seat():
                pass
        assert refused.value.reason == "NO_ROOM"
        assert len(places.taken) == 1
    assert (room.taken, places.taken) == (0, set())


class Full:
    """Places of which none is free."""

    async def take(self) -> str | None:
        return None

    async def give(self, place: str) -> None:
        raise AssertionError("none was taken")


async def test_a_question_without_a_place_among_all_gateways_gives_its_seat_back() -> None:
    room = Room(2, Full())
    for _ in range(3):
        with pytest.raises(SluiceError):
            async with room.seat():
                pass
    assert room.taken == 0


async def sit(room: Room, name: str, order: list[str], leave: asyncio.Event) -> None:
    async with room.seat():
        order.append(name)
        await leave.wait()


async def test_who_leaves_the_line_lets_the_next_one_move_up() -> None:
    room = Room(1, Everywhere(), Waiting(5, 3))
    order, leave = list[str](), asyncio.Event()
    sitting = asyncio.create_task(sit(room, "first", order, leave))
    await settled(lambda: room.taken == 1)
    line = []
    for number, name in enumerate("abc", start=1):
        line.append(asyncio.create_task(sit(room, name, order, leave)))
        await settled(partial(waits, room, number))
    with pytest.raises(SluiceError):
        async with room.seat():
            pass
    line[0].cancel()
    await settled(partial(waits, room, 2))
    leave.set()
    await asyncio.gather(sitting, *line[1:])
    assert order == ["first", "b", "c"]
    assert (room.taken, room.waiting) == (0, 0)


def waits(room: Room, number: int) -> bool:
    return room.waiting == number


async def settled(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not holds():  # noqa: ASYNC110 - the room tells nobody
            await asyncio.sleep(0)


async def test_waiting_questions_are_answered_in_order_and_within_bounds(
    tmp_path: Path, redis: Redis, redis_server: Server
) -> None:
    told = {
        "MAX_IN_FLIGHT": "1",
        "ADMISSION_WAIT": "20",
        "ADMISSION_WAITERS": "3",
        "REDIS_URL": redis_server.url,
    }
    async with served(*ALL) as behind, gateway(behind, tmp_path / "log", told) as house:
        release = behind["generate"].hold()
        asking = [asyncio.create_task(house.ask({"question": "0"}))]
        await behind["generate"].reached()
        for number in range(1, 4):
            asking.append(asyncio.create_task(house.ask({"question": str(number)})))
            await until(in_line(house, number))
        refused = await house.ask()
        assert (refused.status_code, refused.json()["reason"]) == (503, "NO_ROOM")
        release.set()
        answered = await asyncio.gather(*asking)
        assert [response.status_code for response in answered] == [200] * 4
        assert [seen.request.question for seen in behind["retrieve"].seen] == list("0123")

        behind["generate"].reset()
        release = behind["generate"].hold()
        seated = asyncio.create_task(house.ask())
        await behind["generate"].reached()
        clock = asyncio.get_running_loop().time
        began = clock()
        late = await house.ask(Request_Timeout="0.3")
        assert (late.status_code, late.json()["reason"]) == (503, "NO_ROOM")
        assert 0.3 <= clock() - began < 2
        release.set()
        assert (await seated).status_code == 200


def in_line(house: House, number: int) -> Callable[[], Awaitable[bool]]:
    async def holds() -> bool:
        return bool((await capacity(house))["gateway"]["waiting"] == number)

    return holds
