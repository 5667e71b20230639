"""Bodies that are handed on while they come: in small parts, of bounded size, never held whole."""

import asyncio
from collections.abc import AsyncIterator, Callable

from fastapi import Request
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import Message

from chassis.errors import InvalidInput
from gateway.body import BODY_SECONDS, DRAINED_BYTES, TOO_LARGE, TOO_SLOW
from gateway.documents import BrokenOff

PART_BYTES = 256 * 1024

Failure = HTTPException | ClientDisconnect


class Upload:
    """The body of one request, of at most `most` bytes.

    `failure` is why it broke off: HTTPException for a body that is too large or too slow,
    ClientDisconnect when the client left. `breaks` is called as soon as there is one.
    """

    def __init__(self, request: Request, most: int) -> None:
        if "content-encoding" in request.headers:
            raise InvalidInput("a document comes as it is", field="Content-Encoding")
        self.failure: Failure | None = None
        self.breaks: Callable[[], None] = lambda: None
        self._request = request
        self._most = most
        self._ended = asyncio.Event()

    async def parts(self) -> AsyncIterator[bytes]:
        """Raises BrokenOff."""
        try:
            async for piece in self._pieces():
                for start in range(0, len(piece), PART_BYTES):
                    yield piece[start : start + PART_BYTES]
        except (HTTPException, ClientDisconnect) as error:
            self.failure = error
            self.breaks()
            raise BrokenOff from error
        self._ended.set()

    async def receive(self) -> Message:
        """What follows the body in the request's own stream."""
        await self._ended.wait()
        return await self._request.receive()

    async def _pieces(self) -> AsyncIterator[bytes]:
        size, stream = 0, self._request.stream()
        while True:
            try:
                async with asyncio.timeout(BODY_SECONDS):
                    piece = await anext(stream, None)
            except TimeoutError:
                raise HTTPException(TOO_SLOW) from None
            if piece is None:
                break
            size += len(piece)
            if size > self._most + DRAINED_BYTES:
                break
            if size <= self._most:
                yield piece
        if size > self._most:
            raise HTTPException(TOO_LARGE)
