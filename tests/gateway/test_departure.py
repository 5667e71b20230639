"""Whoever leaves ends the work that was done for them, and only that."""

import asyncio

import pytest
from starlette.types import Message

from chassis.errors import Unavailable
from gateway.departure import UNWATCHED, unless_gone

LIMIT = 10.0


class Client:
    """Sends the end of its body, and later that it left."""

    def __init__(self) -> None:
        self.left = asyncio.Event()
        self.watched = asyncio.Event()

    async def receive(self) -> Message:
        if not self.watched.is_set():
            self.watched.set()
            return {"type": "http.request", "body": b"", "more_body": False}
        await self.left.wait()
        return {"type": "http.disconnect"}


class Work:
    """Goes on until it is ended, which takes a moment."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.ended = False

    async def do(self) -> str:
        self.begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            self.ended = True
        return "done"


async def test_what_the_work_returns_or_raises_comes_through_and_nobody_watches_any_longer() -> (
    None
):
    async def fail() -> None:
        raise Unavailable("down")

    async def do(client: Client) -> str:
        await client.watched.wait()
        return "done"

    client = Client()
    async with asyncio.timeout(LIMIT):
        assert await unless_gone(client.receive, do(client)) == "done"
        with pytest.raises(Unavailable):
            await unless_gone(Client().receive, fail())
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_nobody_is_watched_for_what_is_done_at_once() -> None:
    client = Client()
    assert await unless_gone(client.receive, asyncio.sleep(0, "done")) == "done"
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(2 * UNWATCHED):
            await client.watched.wait()


async def test_who_leaves_ends_the_work_and_the_request_is_not_cancelled_any_more() -> None:
    client, work = Client(), Work()
    async with asyncio.timeout(LIMIT), asyncio.TaskGroup() as group:
        serving = group.create_task(unless_gone(client.receive, work.do()))
        await work.begun.wait()
        client.left.set()
        assert await serving is None
    assert work.ended
    assert not serving.cancelling()


async def test_the_servers_end_is_heard_even_as_the_client_leaves() -> None:
    client, work = Client(), Work()
    serving = asyncio.create_task(unless_gone(client.receive, work.do()))
    async with asyncio.timeout(LIMIT):
        await client.watched.wait()
        client.left.set()
        await asyncio.sleep(0)
        serving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await serving
    assert work.ended
