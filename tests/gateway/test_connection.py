"""Connections on which no request is in work end by themselves, and there is a most of them."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import httpx
import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.connection import PIPELINED, Bounds
from gateway.listen import bind, serve_http
from tests.gateway.house import gateway, served, until

HEAD = b"GET / HTTP/1.1\r\nHost: gateway\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: gateway\r\nContent-Length: 1000000\r\n\r\n"
ANSWER = b"HTTP/1.1 204"

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Connect = Callable[[], Awaitable[Stream]]


@asynccontextmanager
async def serving(
    bounds: Bounds,
    seconds: float = 0,
    app: ASGIApp | None = None,
    stop: asyncio.Event | None = None,
) -> AsyncIterator[Connect]:
    """A server whose answers take so long, unless it serves another `app`; it reads no body."""

    async def slow(scope: Scope, receive: Receive, send: Send) -> None:
        await asyncio.sleep(seconds)  # slow work, not a wait for something
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})

    listener = bind("127.0.0.1", 0)
    host, port = listener.getsockname()
    streams: list[Stream] = []
    stop = stop or asyncio.Event()

    async def connect() -> Stream:
        streams.append(await asyncio.open_connection(host, port))
        return streams[-1]

    async def up() -> bool:
        try:
            reader, writer = await asyncio.open_connection(host, port)
        except ConnectionRefusedError:
            return False
        writer.write_eof()
        await reader.read()
        writer.close()
        return True

    async with asyncio.TaskGroup() as group:
        group.create_task(serve_http(app or slow, listener, bounds, 1, stop))
        await until(up)
        yield connect
        stop.set()
        for _, writer in streams:
            writer.close()


async def end_of(reader: asyncio.StreamReader) -> float:
    """Seconds until the other side ends the connection."""
    clock = asyncio.get_running_loop().time
    began = clock()
    with contextlib.suppress(ConnectionResetError):
        await asyncio.wait_for(reader.read(), 5)
    return clock() - began


async def answered(stream: Stream, request: bytes = HEAD) -> bool:
    reader, writer = stream
    writer.write(request)
    head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 5)
    return head.startswith(ANSWER)


@pytest.mark.parametrize("has_asked", [False, True])
async def test_who_asks_before_hearing_of_the_end_is_answered_once_more(has_asked: bool) -> None:  # noqa: FBT001 - a case
    stop = asyncio.Event()
    async with serving(Bounds(10), stop=stop) as connect:
        stream, other = await connect(), await connect()
        assert not has_asked or await answered(stream)
        stop.set()
        # The server has seen it when it accepts nobody any more.
        await until(partial(refused, other[1].get_extra_info("peername")))
        assert await answered(stream)
        await end_of(stream[0])
        await end_of(other[0])


async def refused(address: tuple[str, int]) -> bool:
    try:
        _, writer = await asyncio.open_connection(*address)
    except ConnectionError:  # refused, or reset where nobody listens any more from just now on
        return True
    writer.close()
    return False


@pytest.mark.parametrize("sent", [b"", HEAD[:9], HEAD[:-2]])
async def test_without_a_complete_head_a_connection_ends(sent: bytes) -> None:
    async with serving(Bounds(10, head_seconds=0.3)) as connect:
        reader, writer = await connect()
        writer.write(sent)
        assert await end_of(reader) >= 0.2


async def test_a_head_that_comes_in_drops_gets_no_more_time_by_them() -> None:
    async with serving(Bounds(10, head_seconds=0.3)) as connect:
        reader, writer = await connect()

        ended = asyncio.create_task(end_of(reader))
        while not ended.done():
            writer.write(b"x")
            await asyncio.wait((ended,), timeout=0.02)
        assert ended.result() < 3


async def test_work_that_takes_longer_than_the_head_may_is_answered() -> None:
    async with serving(Bounds(10, head_seconds=0.1), seconds=0.5) as connect:
        stream = await connect()
        assert await answered(stream)
        assert await answered(stream)


async def test_the_head_of_a_second_request_has_the_same_time() -> None:
    async with serving(Bounds(10, head_seconds=0.3)) as connect:
        stream = await connect()
        assert await answered(stream)
        stream[1].write(HEAD[:9])
        assert await end_of(stream[0]) < 3


async def test_the_rest_of_a_body_that_nobody_reads_has_the_same_time() -> None:
    async with serving(Bounds(10, head_seconds=0.3)) as connect:
        stream = await connect()
        assert await answered(stream, POST)
        stream[1].write(b"x" * 100)
        assert await end_of(stream[0]) < 3


async def test_between_two_requests_a_connection_may_idle_for_a_while() -> None:
    async with serving(Bounds(10, head_seconds=0.1, idle_seconds=1)) as connect:
        stream = await connect()
        assert await answered(stream)
        assert 0.5 < await end_of(stream[0]) < 3


async def test_a_client_that_stops_reading_is_cut_off_and_one_that_reads_slowly_is_not() -> None:
    ended = asyncio.Event()

    async def endless(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        try:
            while (await sent_or_left(send, receive))["type"] != "http.disconnect":
                pass
        finally:
            ended.set()

    async def sent_or_left(send: Send, receive: Receive) -> Message:
        body = {"type": "http.response.body", "body": b"x" * 65_536, "more_body": True}
        leaving = asyncio.ensure_future(receive())
        sending = asyncio.ensure_future(send(body))
        await asyncio.wait((leaving, sending), return_when=asyncio.FIRST_COMPLETED)
        if leaving.done():
            sending.cancel()
            return leaving.result()
        leaving.cancel()
        return body

    async with serving(Bounds(10, stalled_seconds=0.3), app=endless) as connect:
        reader, writer = await connect()
        writer.write(HEAD)
        for _ in range(200):
            assert len(await asyncio.wait_for(reader.readexactly(65_536), 5)) == 65_536
        assert not ended.is_set()
        await asyncio.wait_for(ended.wait(), 5)


async def test_requests_that_are_sent_before_an_answer_are_answered_in_turn() -> None:
    steps: list[tuple[str, str]] = []

    async def noted(scope: Scope, receive: Receive, send: Send) -> None:
        steps.append(("begins", scope["path"]))
        await asyncio.sleep(0)  # the others could begin now
        steps.append(("ends", scope["path"]))
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})

    async with serving(Bounds(10), app=noted) as connect:
        stream = await connect()
        stream[1].write(b"".join(HEAD.replace(b"/", b"/%d" % place, 1) for place in range(3)))
        for _ in range(3):
            assert await answered(stream, b"")
        assert steps == [(step, f"/{place}") for place in range(3) for step in ("begins", "ends")]
        assert await answered(stream)


async def test_who_sends_the_next_request_and_leaves_ends_the_work_for_the_one_before() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def endless(scope: Scope, receive: Receive, send: Send) -> None:
        begun.set()
        while (await receive())["type"] != "http.disconnect":
            pass
        ended.set()

    async with serving(Bounds(10), app=endless) as connect:
        _, writer = await connect()
        writer.write(HEAD * 2)
        await asyncio.wait_for(begun.wait(), 5)
        assert not ended.is_set()
        writer.close()
        assert await asyncio.wait_for(ended.wait(), 5)


async def test_who_sends_too_many_requests_without_an_answer_is_cut_off() -> None:
    async with serving(Bounds(10), seconds=60) as connect:
        reader, writer = await connect()
        writer.write(HEAD * (PIPELINED + 2))
        said = await asyncio.wait_for(reader.read(), 5)
        assert said.startswith(b"HTTP/1.1 400 ")


async def test_one_connection_too_many_is_closed_and_the_others_are_served() -> None:
    async with serving(Bounds(2)) as connect:
        held = [await connect() for _ in range(2)]
        for stream in held:
            assert await answered(stream)
        surplus, _ = await connect()
        assert await end_of(surplus) < 3
        for stream in held:
            assert await answered(stream)
        held[0][1].close()

        async def room() -> bool:
            try:
                return await answered(await connect())
            except (ConnectionError, asyncio.IncompleteReadError):
                return False

        await until(room)


async def test_the_process_keeps_to_the_number_that_it_is_told(tmp_path: Path) -> None:
    told = {"MAX_CONNECTIONS": "1"}
    async with served() as behind, gateway(behind, tmp_path / "log", told, wait=False) as house:
        await until(house.listens)

        async def served_alone() -> bool:
            with contextlib.suppress(httpx.TransportError):
                return (await house.http.get("/healthz")).status_code == 503
            return False

        await until(served_alone)
        reader, writer = await asyncio.open_connection("127.0.0.1", house.http_port)
        assert await end_of(reader) < 3
        writer.close()
