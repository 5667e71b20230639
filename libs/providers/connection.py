"""One connection to a provider, by HTTP/1.1: a request, its response as it comes, then the next."""

import asyncio
from typing import cast

import httptools
import httpx2

# Bytes of a body that may wait for its reader; then the provider waits too.
ROOM = 65_536
LARGEST_HEAD = 65_536  # bytes
SIZES = frozenset({b"content-length", b"transfer-encoding"})


class Connection(asyncio.Protocol):
    """`ask`, and then `read` until the body has ended. Both raise httpx2.TransportError.

    No wait here has an end of its own.
    """

    def __init__(self) -> None:
        self.status = 0  # until the head of the response is there
        self.headers: list[tuple[bytes, bytes]] = []
        self._parser = httptools.HttpResponseParser(self)
        self._wire = asyncio.Transport()
        self._news: asyncio.Future[None] | None = None
        self._failure: httpx2.TransportError | None = None
        self._is_open = False
        self._is_paused = False
        self._parts: list[bytes] = []
        self._head_size = 0
        # Of a response. Without a size its body lasts until the connection ends.
        self._is_sized = False
        self._is_whole = self._is_lasting = True

    @property
    def is_free(self) -> bool:
        """Whether another request may be sent."""
        return self._is_open and self._is_whole and self._is_lasting

    async def ask(self, request: bytes) -> None:
        """Returns as soon as `status` and `headers` are those of the response."""
        self.status, self.headers, self._head_size = 0, [], 0
        self._is_sized = self._is_whole = False
        self._wire.write(request)
        while not self.status:
            await self._change()

    async def read(self) -> bytes:
        """What has come of the body since; nothing at its end."""
        while not self._parts:
            if self._is_whole:
                return b""
            await self._change()
        part = b"".join(self._parts)
        self._parts.clear()
        if self._is_paused:
            self._is_paused = False
            self._wire.resume_reading()
        return part

    def close(self) -> None:
        """At once: whoever still writes to it learns that nobody reads."""
        self._is_open = False
        self._wire.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # As uvloop's is one without saying so.
        self._wire = cast("asyncio.Transport", transport)
        self._is_open = True

    def data_received(self, data: bytes) -> None:
        if self._is_whole:
            # Nothing was asked.
            self.close()
            return
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._fail("the reply is no HTTP", error)
        if not self.status:
            self._head_size += len(data)
            if self._head_size > LARGEST_HEAD:
                self._fail("the reply's head does not end")
        elif not self._is_paused and sum(map(len, self._parts)) > ROOM:
            self._is_paused = True
            self._wire.pause_reading()
        self._tell()

    def connection_lost(self, error: Exception | None) -> None:
        self._is_open = False
        if self.status and not self._is_sized and error is None:
            self._is_whole = True
        if not self._is_whole:
            self._fail("the connection ended before the reply did", error)
        self._tell()

    def on_message_begin(self) -> None:
        if self._is_whole:
            raise httpx2.RemoteProtocolError("a reply to nothing")

    def on_header(self, name: bytes, value: bytes) -> None:
        # What comes after the body is not read.
        if not self.status:
            self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status < httpx2.codes.OK:
            # An interim response: the one that counts follows.
            self.headers.clear()
            return
        self.status = status
        self._is_sized = any(name.lower() in SIZES for name, _ in self.headers)

    def on_body(self, part: bytes) -> None:
        self._parts.append(part)

    def on_message_complete(self) -> None:
        if self.status:
            self._is_whole = True
            self._is_lasting = self._parser.should_keep_alive()

    async def _change(self) -> None:
        if self._failure is not None:
            raise self._failure
        self._news = asyncio.get_running_loop().create_future()
        try:
            await self._news
        finally:
            self._news = None

    def _tell(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    def _fail(self, why: str, cause: Exception | None = None) -> None:
        if self._failure is None:
            self._failure = httpx2.RemoteProtocolError(why)
            self._failure.__cause__ = cause
        self.close()
