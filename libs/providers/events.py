"""The data of Server-Sent Events, read from a body as it comes."""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator

import httpx2

# What the protocol for chats ends its events with.
LAST = "[DONE]"
# Seconds that the end of the body may come later; then its connection cannot be used again.
LINGERS = 0.1
_FIELDS = frozenset({"data", "event", "retry"})


class Events:
    """The data of each event, one after the other, until the last."""

    def __init__(self, body: AsyncIterator[bytes]) -> None:
        self._body = body
        self._lines = Lines()
        self._unread: deque[bytes] = deque()
        self._data: list[str] = []
        self._has_begun = False

    async def next(self) -> str | None:
        """None at the end; "" for an event without data. Raises UnicodeDecodeError."""
        while True:
            while self._unread:
                data = self._ended(self._unread.popleft().decode())
                if data is not None:
                    return None if await self._is_last(data) else data
            part = await anext(self._body, None)
            if part is None:
                return None
            self._unread.extend(self._lines.take(part))

    def _ended(self, line: str) -> str | None:
        """The data of the event that the line ends, if it ends one."""
        if not line:
            data = "\n".join(self._data) if self._has_begun else None
            self._data.clear()
            self._has_begun = False
            return data
        name, _, value = line.partition(":")
        if name == "data":
            self._data.append(value.removeprefix(" "))
        self._has_begun = self._has_begun or name in _FIELDS
        return None

    async def _is_last(self, data: str) -> bool:
        if not data.startswith(LAST):
            return False
        # Nothing of the rest can undo what was said.
        self._unread.clear()
        with contextlib.suppress(TimeoutError, httpx2.HTTPError):
            async with asyncio.timeout(LINGERS):
                async for _ in self._body:
                    pass
        return True


class Lines:
    """Lines of bytes that are split anywhere; CR, LF or both end one."""

    def __init__(self) -> None:
        self._begun: list[bytes] = []
        self._ended_in_cr = False

    def take(self, part: bytes) -> list[bytes]:
        """Those that end in the part, without their ends."""
        if self._ended_in_cr and part:
            part = part.removeprefix(b"\n")
            self._ended_in_cr = False
        lines = part.splitlines(keepends=True)
        if not lines:
            return lines
        self._ended_in_cr = part.endswith(b"\r")
        rest = [] if part.endswith((b"\r", b"\n")) else [lines.pop()]
        if lines and self._begun:
            lines[0] = b"".join([*self._begun, lines[0]])
            self._begun.clear()
        self._begun += rest
        return [line.rstrip(b"\r\n") for line in lines]
