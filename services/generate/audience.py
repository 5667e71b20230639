"""Who is shown an answer while it comes, and never more of it at once than they can take."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from services.generate.result import Result

ROOM = 64  # pieces of text that wait for a slow reader; then the model's stream waits too


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
        self._events: asyncio.Queue[Event | None] = asyncio.Queue()
        self._pieces: list[str] = []
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
        self._events.put_nowait(Delta(text))

    def withdraw(self, reason: Withdrawal) -> None:
        """Take back what was shown; nothing happens where nothing was."""
        if self.has_seen and not self.is_withdrawn:
            self.is_withdrawn = True
            self._events.put_nowait(Retracted(reason))

    async def conclude(self, result: Result) -> None:
        """Show what is left of the answer, and its verdict."""
        shown = self.shown
        if not result.text.startswith(shown):
            self.withdraw(Withdrawal.INVALID_OUTPUT)
        await self.show(result.text[len(shown) :])
        self._events.put_nowait(Final(result))

    def end(self) -> None:
        """No event follows."""
        self._events.put_nowait(None)

    async def events(self) -> AsyncGenerator[Event, None]:
        """Until the end, for one reader."""
        while (event := await self._events.get()) is not None:
            if isinstance(event, Delta):
                self._room.release()
            yield event
