"""Requests over connections to a server that says what it is told to."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
import pytest

from local import ports
from providers.connection import LARGEST_HEAD
from providers.transport import Transport
from tests.authority import Authority

WAITS = 5.0  # seconds for what is to come at once
HEAD = b"HTTP/1.1 200 OK\r\n"
SIZED = HEAD + b"content-length: 4\r\n\r\nbody"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\nbo\r\n2\r\ndy\r\n0\r\nlate: 1\r\n\r\n"
LAST = HEAD + b"content-type: text/plain\r\n\r\nbody"
INTERIM = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: a\r\n\r\n"
EMPTY = b"HTTP/1.1 204 No Content\r\n\r\n"
CLOSING = HEAD + b"connection: close\r\ncontent-length: 4\r\n\r\nbody"


@dataclass(slots=True)
class Server:
    """Each request gets the next reply, in pieces of so many bytes; `ends` after one."""

    replies: list[bytes] = field(default_factory=list)
    piece: int = 100_000
    ends: bool = False
    port: int = 0
    asked: list[bytes] = field(default_factory=list)
    connections: int = 0
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    left: asyncio.Queue[None] = field(default_factory=asyncio.Queue)

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                self.asked.append(head + await reader.readexactly(2))
                self.arrived.set()
                reply = self.replies.pop(0)
                for at in range(0, len(reply), self.piece):
                    writer.write(reply[at : at + self.piece])
                    await writer.drain()
                    await asyncio.sleep(0)
                if self.ends:
                    break
        self.left.put_nowait(None)
        writer.close()
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            await writer.wait_closed()

    async def gone(self) -> None:
        """A connection has ended."""
        async with asyncio.timeout(WAITS):
            await self.left.get()


@asynccontextmanager
async def listening(context: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    server = Server()
    listener = await asyncio.start_server(server.connected, "127.0.0.1", 0, ssl=context)
    server.port = listener.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listener.close()


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with listening() as server:
        yield server


@pytest.fixture
async def client() -> AsyncIterator[httpx2.AsyncClient]:
    transport = Transport(httpx2.create_ssl_context())
    async with httpx2.AsyncClient(transport=transport) as client:
        yield client


async def ask(client: httpx2.AsyncClient, server: Server, scheme: str = "http") -> httpx2.Response:
    async with asyncio.timeout(WAITS):
        return await client.post(f"{scheme}://127.0.0.1:{server.port}/v1?a=b", content=b"hi")


async def none_is_free(client: httpx2.AsyncClient) -> None:
    transport = client._transport
    assert isinstance(transport, Transport)
    async with asyncio.timeout(WAITS):
        while any(each.is_free for idle in transport._idle.values() for _, each in idle):  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0)


@pytest.mark.parametrize("piece", [1, 7, 100_000])
@pytest.mark.parametrize("reply", [SIZED, CHUNKED, LAST, INTERIM + SIZED])
async def test_a_reply_is_whole_however_it_is_sized_and_split(
    server: Server, client: httpx2.AsyncClient, reply: bytes, piece: int
) -> None:
    server.replies, server.piece, server.ends = [reply], piece, reply is LAST
    response = await ask(client, server)
    assert (response.status_code, response.content) == (200, b"body")
    assert "link" not in response.headers
    assert "late" not in response.headers


async def test_a_request_is_sent_as_it_was_made(server: Server, client: httpx2.AsyncClient) -> None:
    server.replies = [EMPTY]
    await client.post(f"http://127.0.0.1:{server.port}/v1?a=b", content=b"hi", headers={"X": "y"})
    first, *headers, _, body = server.asked[0].split(b"\r\n")
    assert (first, body) == (b"POST /v1?a=b HTTP/1.1", b"hi")
    assert {b"content-length: 2", b"host: 127.0.0.1:%d" % server.port, b"x: y"} <= {
        name.lower() + separator + value
        for name, separator, value in (header.partition(b": ") for header in headers)
    }


@pytest.mark.parametrize("reply", [SIZED, CHUNKED, EMPTY, INTERIM + SIZED])
async def test_a_connection_is_used_again(
    server: Server, client: httpx2.AsyncClient, reply: bytes
) -> None:
    server.replies = [reply, SIZED, reply]
    assert [(await ask(client, server)).content for _ in range(3)][1] == b"body"
    assert server.connections == 1


async def test_two_requests_at_once_have_a_connection_each(
    server: Server, client: httpx2.AsyncClient
) -> None:
    server.replies = [SIZED] * 3
    await asyncio.gather(ask(client, server), ask(client, server))
    await ask(client, server)
    assert server.connections == 2


@pytest.mark.parametrize("reply", [SIZED, CLOSING, SIZED + SIZED, SIZED + b"!"])
async def test_a_connection_that_ends_or_says_more_is_not_used_again(
    server: Server, client: httpx2.AsyncClient, reply: bytes
) -> None:
    server.replies, server.ends = [reply, SIZED], reply is SIZED
    assert (await ask(client, server)).content == b"body"
    await none_is_free(client)
    assert (await ask(client, server)).content == b"body"
    assert server.connections == 2


async def test_a_connection_that_was_not_used_for_long_is_not_used_again(
    server: Server, client: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("providers.transport.IDLE", -1.0)
    server.replies = [SIZED] * 2
    await ask(client, server)
    await ask(client, server)
    await server.gone()
    assert server.connections == 2


async def test_what_is_kept_ends_with_the_client(server: Server) -> None:
    server.replies = [SIZED]
    async with httpx2.AsyncClient(transport=Transport(httpx2.create_ssl_context())) as client:
        await ask(client, server)
        assert server.left.empty()
    await server.gone()


CUT = [
    *(b"", b"HTTP/1.1 2", HEAD, SIZED[:-1], CHUNKED[:-1], CHUNKED[:-12], b"SSH-2.0\r\n"),
    *(HEAD + b"content-length: x\r\n\r\n", b"HTTP/1.1 101 Switching\r\n\r\n", INTERIM),
]


@pytest.mark.parametrize("reply", CUT)
async def test_a_reply_that_is_cut_or_cannot_be_read_is_none(
    server: Server, client: httpx2.AsyncClient, reply: bytes
) -> None:
    server.replies, server.ends = [reply], True
    with pytest.raises(httpx2.RemoteProtocolError):
        await ask(client, server)


async def test_a_head_that_does_not_end_is_left(server: Server, client: httpx2.AsyncClient) -> None:
    server.replies = [HEAD + b"a: b\r\n" * LARGEST_HEAD]
    with pytest.raises(httpx2.RemoteProtocolError):
        await ask(client, server)
    await server.gone()


async def test_what_came_before_a_cut_is_read(server: Server, client: httpx2.AsyncClient) -> None:
    server.replies, server.ends = [SIZED[:-1]], True
    async with client.stream("POST", f"http://127.0.0.1:{server.port}", content=b"hi") as reply:
        body = reply.aiter_raw()
        assert await anext(body) == b"bod"
        with pytest.raises(httpx2.RemoteProtocolError):
            await anext(body)


async def test_who_leaves_within_a_body_ends_the_connection(
    server: Server, client: httpx2.AsyncClient
) -> None:
    server.replies = [HEAD + b"content-length: 100\r\n\r\nbody", SIZED]
    async with client.stream("POST", f"http://127.0.0.1:{server.port}", content=b"hi") as reply:
        assert await anext(reply.aiter_raw()) == b"body"
    await server.gone()
    assert (await ask(client, server)).content == b"body"


async def test_who_is_cancelled_before_the_head_ends_the_connection(
    server: Server, client: httpx2.AsyncClient
) -> None:
    server.replies = [INTERIM]
    asking = asyncio.create_task(ask(client, server))
    async with asyncio.timeout(WAITS):
        await server.arrived.wait()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await server.gone()


async def test_a_slow_reader_slows_the_provider_down(
    server: Server, client: httpx2.AsyncClient
) -> None:
    size = 50_000_000
    server.replies = [HEAD + b"content-length: %d\r\n\r\n" % size + b"x" * size]
    async with client.stream("POST", f"http://127.0.0.1:{server.port}", content=b"hi") as reply:
        body = reply.aiter_raw()
        read = len(await anext(body))
        waiting = asyncio.create_task(server.gone())
        assert not (await asyncio.wait((waiting,), timeout=0.2))[0]
        largest = 0
        async for part in body:
            largest = max(largest, len(part))
            read += len(part)
        waiting.cancel()
    assert read == size
    assert largest < size / 10


async def test_a_header_that_would_be_two_is_not_sent(
    server: Server, client: httpx2.AsyncClient
) -> None:
    with pytest.raises(httpx2.LocalProtocolError):
        await client.post(f"http://127.0.0.1:{server.port}", headers={"a": "b\r\nc: d"})
    assert not server.connections


async def refused(client: httpx2.AsyncClient) -> None:
    (port,) = ports.free(1)
    await client.post(f"http://127.0.0.1:{port}")


async def nowhere(client: httpx2.AsyncClient) -> None:
    await client.post("http://nowhere.invalid")


async def elsewhere(client: httpx2.AsyncClient) -> None:
    await client.post("ftp://127.0.0.1/")


@pytest.mark.parametrize(
    ("asking", "error"),
    [
        (refused, httpx2.ConnectError),
        (nowhere, httpx2.ConnectError),
        (elsewhere, httpx2.UnsupportedProtocol),
    ],
)
async def test_what_cannot_be_connected_says_so(
    client: httpx2.AsyncClient,
    asking: Callable[[httpx2.AsyncClient], Awaitable[None]],
    error: type[Exception],
) -> None:
    with pytest.raises(error):
        await asking(client)


@asynccontextmanager
async def encrypted(folder: Path, name: str) -> AsyncIterator[tuple[Server, httpx2.AsyncClient]]:
    paths = Authority().write(folder, name)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(paths.certificate, paths.key)
    trusting = ssl.create_default_context(cafile=paths.authority)
    async with (
        listening(context) as server,
        httpx2.AsyncClient(transport=Transport(trusting)) as client,
    ):
        yield server, client


async def test_encrypted_connections_are_used_again(tmp_path: Path) -> None:
    async with encrypted(tmp_path, "127.0.0.1") as (server, client):
        server.replies = [SIZED, CHUNKED]
        assert [(await ask(client, server, "https")).content for _ in range(2)] == [b"body"] * 2
        assert server.connections == 1


async def test_a_certificate_of_another_name_is_not_trusted(tmp_path: Path) -> None:
    async with encrypted(tmp_path, "127.0.0.2") as (server, client):
        with pytest.raises(httpx2.ConnectError):
            await ask(client, server, "https")
        assert not server.asked


async def test_an_authority_that_nobody_knows_is_not_trusted(
    tmp_path: Path, client: httpx2.AsyncClient
) -> None:
    async with encrypted(tmp_path, "127.0.0.1") as (server, _):
        with pytest.raises(httpx2.ConnectError):
            await ask(client, server, "https")
        assert not server.asked
