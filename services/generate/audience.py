"""Who is shown an answer while it comes, and never more of it at once than they can take."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from services.generate.result import Result

ROOM = 64  # pieces of text that wait for a slow reader; then the model's stream waits too
# Seconds between two deltas of a stream. Nobody reads faster, and each costs every hop the same.
PACE = 0.02


class Withdrawal(Enum):
    """Why shown text is taken back."""

    INVALID_OUTPUT = "the whole answer failed validation"
    INTERRUPTED = "the model stopped in the middle"
    REFUSED = "the model refused, or its filter withheld the rest"
    DEADLINE = "the time was over"


@dataclass(frozen=True, slots=True)
class Delta:
    text: str


@dataclass(frozen=True, slots=True)
class Retracted:
    reason: Withdrawal


@dataclass(frozen=True, slots=True)
class Final:
    result: Result


Event: TypeAlias = Delta | Retracted | Final


class Audience:
    """Text is shown in order, taken back at most once, and nothing is shown after that."""

    def __init__(self, room: int = ROOM) -> None:
        self._room = asyncio.Semaphore(room)
        self._pieces: list[str] = []
        self._unread: list[str] = []
        self._after_text: deque[Retracted | Final] = deque()
        self._news = asyncio.Event()
        self._text_ended = asyncio.Event()
        self._has_ended = False
        self.is_withdrawn = False

    @property
    def has_seen(self) -> bool:
        """Whether anything was ever shown."""
        return bool(self._pieces)

    @property
    def shown(self) -> str:
        return "".join(self._pieces)

    async def show(self, text: str) -> None:
        """Waits while the reader is slow."""
        if not text or self.is_withdrawn:
            return
        await self._room.acquire()
        self._pieces.append(text)
        self._unread.append(text)
        self._news.set()

    def withdraw(self, reason: Withdrawal) -> None:
        """Take back what was shown; nothing happens where nothing was."""
        if self.has_seen and not self.is_withdrawn:
            self.is_withdrawn = True
            self._close_with(Retracted(reason))

    async def conclude(self, result: Result) -> None:
        """Show what is left of the answer, and its verdict."""
        shown = self.shown
        if not result.text.startswith(shown):
            self.withdraw(Withdrawal.INVALID_OUTPUT)
        await self.show(result.text[len(shown) :])
        self._close_with(Final(result))

    def end(self) -> None:
        """No event follows."""
        self._has_ended = True
        self._text_ended.set()
        self._news.set()

    async def events(self) -> AsyncGenerator[Event, None]:
        """Until the end, for one reader. The first text comes at once, the rest at a pace."""
        while True:
            if self._unread:
                yield Delta(self._read())
                await self._pause()
            elif self._after_text:
                yield self._after_text.popleft()
            elif self._has_ended:
                return
            else:
                await self._news.wait()
                self._news.clear()

    def _read(self) -> str:
        unread, self._unread = self._unread, []
        for _ in unread:
            self._room.release()
        return "".join(unread)

    async def _pause(self) -> None:
        """What is not text waits for nothing."""
        with suppress(TimeoutError):
            async with asyncio.timeout(PACE):
                await self._text_ended.wait()

    def _close_with(self, event: Retracted | Final) -> None:
        self._after_text.append(event)
        self._text_ended.set()
        self._news.set()
