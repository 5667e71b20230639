"""How requests of the openai client reach a provider: connections kept for the next request.

It stands where the client has httpx2's own, by the way that is made for that: what that one spends
on layers, locks and timers was half of what a call took.
"""

import asyncio
import re
import ssl
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, Self

import httpx2

from providers.connection import Connection
from providers.reach import PORTS

# Seconds without use after which a connection is not used again.
IDLE = 5.0
_UNSAFE = re.compile(rb"[\r\n\0]")


class Origin(NamedTuple):
    scheme: str
    host: str
    port: int


class Transport(httpx2.AsyncBaseTransport):
    """Knows no proxy, and no time limit: whoever sends bounds the wait, as `Attempt.bounded` does.

    Raises httpx2.ConnectError where the provider cannot have seen anything of a request, and other
    httpx2.TransportError.
    """

    def __init__(self, context: ssl.SSLContext) -> None:
        self._context = context
        # With the loop's time since when; the one used last stands last.
        self._idle: dict[Origin, deque[tuple[float, Connection]]] = {}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        origin, message = _origin(request.url), _message(request)
        connection = self._kept(origin) or await self._opened(origin)
        try:
            await connection.ask(message)
        except BaseException:
            connection.close()
            raise
        body = Body(connection, partial(self._keep, origin))
        return httpx2.Response(connection.status, headers=connection.headers, stream=body)

    async def aclose(self) -> None:
        for idle in self._idle.values():
            for _, connection in idle:
                connection.close()
        self._idle.clear()

    def _kept(self, origin: Origin) -> Connection | None:
        idle = self._idle.get(origin)
        while idle:
            since, connection = idle.pop()
            if connection.is_free and since + IDLE > _now():
                return connection
            connection.close()
        return None

    def _keep(self, origin: Origin, connection: Connection) -> None:
        idle = self._idle.setdefault(origin, deque())
        while idle and idle[0][0] + IDLE < _now():
            idle.popleft()[1].close()
        idle.append((_now(), connection))

    async def _opened(self, origin: Origin) -> Connection:
        context = self._context if origin.scheme == "https" else None
        try:
            _, connection = await asyncio.get_running_loop().create_connection(
                Connection, origin.host, origin.port, ssl=context
            )
        except OSError as error:
            raise httpx2.ConnectError(f"no connection to {origin.host}") from error
        return connection


class Body(httpx2.AsyncByteStream):
    """A response's body as it comes. Its connection is given to `keep` if it may be used again.

    Otherwise it is closed, which ends the provider's work.
    """

    def __init__(self, connection: Connection, keep: Callable[[Connection], None]) -> None:
        self._connection: Connection | None = connection
        self._keep = keep

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        if self._connection is None:
            raise StopAsyncIteration
        try:
            part = await self._connection.read()
        except BaseException:
            self._leave()
            raise
        if not part:
            raise StopAsyncIteration
        return part

    async def aclose(self) -> None:
        self._leave()

    def _leave(self) -> None:
        connection, self._connection = self._connection, None
        if connection is None:
            return
        if connection.is_free:
            self._keep(connection)
        else:
            connection.close()


def _now() -> float:
    return asyncio.get_running_loop().time()


def _origin(url: httpx2.URL) -> Origin:
    if url.scheme not in PORTS:
        raise httpx2.UnsupportedProtocol("an address begins with http:// or https://")
    return Origin(url.scheme, url.raw_host.decode("ascii"), url.port or PORTS[url.scheme])


def _message(request: httpx2.Request) -> bytes:
    """The request as it is sent; its body is there already."""
    lines = [b"%b %b HTTP/1.1" % (request.method.encode("ascii"), request.url.raw_path)]
    lines += [b"%b: %b" % header for header in request.headers.raw]
    if any(map(_UNSAFE.search, lines)):
        raise httpx2.LocalProtocolError("a header holds the end of a line")
    return b"\r\n".join([*lines, b"", request.content])
