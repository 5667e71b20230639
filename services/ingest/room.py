"""How much is prepared at once, and how many may wait for it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from chassis.errors import Exhausted
from services.ingest.stop import Stop

T = TypeVar("T")

# Preparing is computing: more at once only takes memory.
AT_ONCE = 4
# Each of those that wait holds a whole document.
WAITING = 16
RETRY_SECONDS = 2.0


class Room:
    """Threads for `at_once` pieces of work; up to `waiting` more wait as long as their callers."""

    def __init__(self, at_once: int = AT_ONCE, waiting: int = WAITING) -> None:
        self._places = asyncio.Semaphore(at_once)
        self._most = at_once + waiting
        self._inside = 0

    async def run(self, work: Callable[[Stop], T]) -> T:
        """What the work returns; it is asked to stop when the caller leaves.

        Raises Exhausted (NO_ROOM_TO_PREPARE) when too many wait already, and what the work raises.
        """
        async with self._entered():
            await self._places.acquire()
            stop = Stop()
            working = asyncio.get_running_loop().run_in_executor(None, work, stop)
            working.add_done_callback(self._free)
            try:
                # A caller that leaves does not end the thread: its place is free when it has ended.
                return await asyncio.shield(working)
            finally:
                stop.ask()

    def _free(self, worked: asyncio.Future[T]) -> None:
        self._places.release()
        if not worked.cancelled():
            worked.exception()  # nobody may be left to hear it

    @asynccontextmanager
    async def _entered(self) -> AsyncIterator[None]:
        if self._inside >= self._most:
            raise Exhausted(
                f"{self._inside} documents are being prepared or wait for it",
                reason="NO_ROOM_TO_PREPARE",
                retry_after=RETRY_SECONDS,
            )
        self._inside += 1
        try:
            yield
        finally:
            self._inside -= 1
