"""Whose text is embedded next: one at a time, requests in rotation, newcomers soon.

A request takes a turn a text, so that a single query passes a batch of hundreds, and a request
whose client left simply takes no further turn.
"""

import asyncio
import math
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

A = TypeVar("A")
B = TypeVar("B")

# Assumed before anything was measured; a passage of 100 tokens on a slow core.
FIRST_SECONDS = 0.15
SMOOTHING = 0.1


class LineFull(Exception):
    """No room for another request. `retry_after` is in whole seconds, at least 1."""

    def __init__(self, retry_after: int) -> None:
        super().__init__("too many requests are waiting")
        self.retry_after = retry_after


@dataclass(slots=True, eq=False)
class _Request:
    left: int
    begun: bool = False


class Line:
    """Runs work in one thread. `limit` requests may be in the line, running ones included."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._requests: set[_Request] = set()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="inference")
        self._taken = False
        self._newcomers: deque[asyncio.Future[None]] = deque()
        self._rotation: deque[asyncio.Future[None]] = deque()
        self._newcomer_went_last = False
        self._seconds = FIRST_SECONDS

    async def run(self, work: Callable[[A], B], items: Sequence[A]) -> list[B]:
        """`work` of each item, in order. Raises LineFull at once when there is no room."""
        if len(self._requests) >= self._limit:
            raise LineFull(self._until_room())
        request = _Request(len(items))
        self._requests.add(request)
        try:
            return [await self._one(request, work, item) for item in items]
        finally:
            self._requests.discard(request)

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _one(self, request: _Request, work: Callable[[A], B], item: A) -> B:
        waiting = self._rotation if request.begun else self._newcomers
        async with self._turn(waiting):
            request.begun = True
            began = time.monotonic()
            result = await asyncio.get_running_loop().run_in_executor(self._thread, work, item)
            self._seconds += SMOOTHING * (time.monotonic() - began - self._seconds)
        request.left -= 1
        return result

    @asynccontextmanager
    async def _turn(self, waiting: deque[asyncio.Future[None]]) -> AsyncIterator[None]:
        if self._taken:
            await self._granted(waiting)
        self._taken = True
        try:
            yield
        finally:
            self._pass_on()

    async def _granted(self, waiting: deque[asyncio.Future[None]]) -> None:
        turn = asyncio.get_running_loop().create_future()
        waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._pass_on()
            raise

    def _pass_on(self) -> None:
        for waiting in self._order():
            while waiting:
                turn = waiting.popleft()
                if not turn.done():
                    self._newcomer_went_last = waiting is self._newcomers
                    turn.set_result(None)
                    return
        self._taken = False

    def _order(self) -> tuple[deque[asyncio.Future[None]], ...]:
        """Newcomers first, but never twice in a row while others wait: nobody starves."""
        if self._newcomer_went_last:
            return self._rotation, self._newcomers
        return self._newcomers, self._rotation

    def _until_room(self) -> int:
        shortest = min(request.left for request in self._requests)
        return max(1, math.ceil(shortest * len(self._requests) * self._seconds))
