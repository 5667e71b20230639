"""A model provider that does as it is told: a real HTTP server, one scripted reply a request."""

import asyncio
import contextlib
import json
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

LIMIT = 5.0  # seconds that a test waits for the server to see something


@dataclass(slots=True)
class Exchange:
    """One request as it arrived, and the way back. Times are `time.monotonic()`."""

    at: float
    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]
    writer: asyncio.StreamWriter
    left_at: float | None = None
    left: asyncio.Event = field(default_factory=asyncio.Event)

    def head(self, status: int, headers: Mapping[str, str]) -> None:
        lines = [f"HTTP/1.1 {status} Scripted", "connection: close"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        self.writer.write("\r\n".join([*lines, "", ""]).encode())

    async def write(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()


Reply = Callable[[Exchange], Awaitable[None]]


async def unexpected(exchange: Exchange) -> None:
    exchange.head(500, {"content-type": "application/json"})
    await exchange.write(b'{"error": {"message": "no reply was scripted"}}')


class ScriptedProvider:
    """Replies with what `script` was given, in order, and to any other request with `otherwise`."""

    def __init__(self, otherwise: Reply = unexpected, port: int = 0) -> None:
        self.arrivals: list[Exchange] = []
        self._otherwise = otherwise
        self._port = port
        self._replies: deque[Reply] = deque()
        self._server: asyncio.Server | None = None
        self._running: set[asyncio.Task[None]] = set()
        self._arrived = asyncio.Condition()

    def script(self, *replies: Reply) -> None:
        self._replies.extend(replies)

    @property
    def base_url(self) -> str:
        if self._server is None:
            raise RuntimeError("the scripted provider is not started")
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", self._port)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    async def arrival(self, number: int) -> Exchange:
        """The request of this number, from 0, as soon as it is there."""
        async with asyncio.timeout(LIMIT), self._arrived:
            await self._arrived.wait_for(lambda: len(self.arrivals) > number)
        return self.arrivals[number]

    @property
    def calls(self) -> int:
        """Physical calls that arrived."""
        return len(self.arrivals)

    async def departure(self, number: int) -> float:
        """When the client of that request had closed its connection, on the monotonic clock."""
        exchange = await self.arrival(number)
        async with asyncio.timeout(LIMIT):
            await exchange.left.wait()
        if exchange.left_at is None:
            raise RuntimeError("a departure has a time")
        return exchange.left_at

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # A task of our own: asyncio complains of its own ones that are cancelled at the end.
        task = asyncio.create_task(self._served(reader, writer))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _served(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._serve(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        exchange = await _read(reader, writer)
        async with self._arrived:
            self.arrivals.append(exchange)
            self._arrived.notify_all()
        reply = self._replies.popleft() if self._replies else self._otherwise
        watching = asyncio.create_task(_watch(reader, exchange))
        try:
            await reply(exchange)
        finally:
            watching.cancel()


async def _watch(reader: asyncio.StreamReader, exchange: Exchange) -> None:
    with contextlib.suppress(ConnectionError):
        await reader.read(1)
    exchange.left_at = time.monotonic()
    exchange.left.set()


async def _read(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Exchange:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.strip().split("\r\n")
    headers = {
        name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
    }
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    path = first.split(" ")[1]
    return Exchange(time.monotonic(), path, headers, json.loads(body or b"{}"), writer)
