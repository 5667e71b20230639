"""Calls that the ingest stage turns away are made again, within bounds."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from chassis.errors import Conflict, DeadlineExceeded, Exhausted, Unauthenticated, Unavailable
from cli.identity import expired

# Seconds between the tries of one call, and seconds after the first failure in which one may begin:
# a stage that is restarted on a busy machine needs up to a minute.
PAUSES = (1.0, *(2.0,) * 60)
LONGEST_PAUSE = 30.0
LONGEST = 90.0
# The index did not answer in its own time; the call's time was not over.
INDEX_SLOW = "INDEX_SLOW"

T = TypeVar("T")


@dataclass(slots=True)
class Patience:
    """Shared by all calls of a run, so that an outage is told once. `clock` gives seconds."""

    say: Callable[[str], None]
    pauses: Sequence[float] = PAUSES
    clock: Callable[[], float] = time.monotonic
    _is_told: bool = field(default=False, init=False)

    async def call(self, call: Callable[[], Awaitable[T]]) -> T:
        """What the call returns in the end. Raises what its last try raised."""
        end = 0.0
        is_renewed = False
        for pause in self.pauses:
            began = self.clock()
            try:
                return await self._tried(call)
            except (Unavailable, Exhausted, Conflict, Unauthenticated, DeadlineExceeded) as error:
                if isinstance(error, DeadlineExceeded) and error.reason != INDEX_SLOW:
                    raise
                if isinstance(error, Unauthenticated):
                    # Every try has a token of its own: a second one that is too old stays so.
                    if is_renewed or not expired(error):
                        raise
                    is_renewed = True
                failed, wait = self.clock(), min(max(pause, error.retry_after or 0), LONGEST_PAUSE)
                # A call that was under way for long met another outage than the one before.
                end = end if end and failed - began < LONGEST else failed + LONGEST
                if failed + wait > end:
                    raise
                if isinstance(error, Unavailable):
                    self._tell(error)
            await asyncio.sleep(wait)
        return await self._tried(call)

    async def put(self, call: Callable[[], Awaitable[T]]) -> T:
        """As `call`, again as long as each try ends further than the last for want of time."""
        far = -1
        while True:
            try:
                return await self.call(call)
            except DeadlineExceeded as error:
                before, far = far, int(error.metadata.get("embedded", 0))
                if far <= before:
                    raise

    async def _tried(self, call: Callable[[], Awaitable[T]]) -> T:
        done = await call()
        self._is_told = False
        return done

    def _tell(self, error: Unavailable) -> None:
        if not self._is_told:
            self.say(f"{error.message}; trying again for up to {LONGEST:g} s")
        self._is_told = True
