"""Places in flight across all gateways: leases in Redis, renewed while a question is answered.

A dead process's leases lapse by themselves. While Redis is lost each process keeps to its share.
"""

import asyncio
import contextlib
import uuid
from collections.abc import Coroutine
from typing import Protocol

from gateway.store import Store, StoreLost

KEY = "sluice:{room:interactive}:places"
MILLISECONDS = 1_000
# A lease outlives two renewals that failed.
RENEWALS = 0.3


class Places(Protocol):
    async def take(self) -> str | None:
        """Take a place. Its id, or None when all are taken."""

    async def give(self, place: str) -> None:
        """Give a place back. What fails lapses with the lease."""


class SharedPlaces:
    """`number` places for at most `max_processes` processes; `lease` in seconds."""

    def __init__(self, store: Store, number: int, max_processes: int, lease: float) -> None:
        self._store = store
        self.number = number
        self._own_share = number // max_processes
        self._lease = lease
        self._milliseconds = round(lease * MILLISECONDS)
        self._held: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._renewal: asyncio.Task[None] | None = None

    async def take(self) -> str | None:
        place = uuid.uuid4().hex
        try:
            taken = await self._granted(place)
        except asyncio.CancelledError:
            # Whether it was granted is not known.
            self._start(self._return(place))
            raise
        if not taken:
            return None
        self._held.add(place)
        if self._renewal is None:
            self._renewal = asyncio.create_task(self._renew_all())
        return place

    async def give(self, place: str) -> None:
        self._held.discard(place)
        await asyncio.shield(self._start(self._return(place)))

    async def taken(self) -> int | None:
        """How many places all gateways hold; None while Redis cannot say."""
        try:
            found = await self._store.run("count_places", [KEY])
        except StoreLost:
            return None
        return int(found[0])

    async def close(self) -> None:
        """Finish what is being given back. No question is answered any more."""
        if self._renewal:
            self._renewal.cancel()
            await asyncio.wait([self._renewal])
        await asyncio.gather(*self._tasks)

    async def _granted(self, place: str) -> bool:
        try:
            (taken,) = await self._store.run(
                "take_place", [KEY], self.number, self._milliseconds, place
            )
        except StoreLost:
            return len(self._held) < self._own_share
        return bool(taken)

    async def _return(self, place: str) -> None:
        with contextlib.suppress(StoreLost):
            await self._store.run("give_place", [KEY], place)

    async def _renew_all(self) -> None:
        while True:
            await asyncio.sleep(self._lease * RENEWALS)
            with contextlib.suppress(StoreLost):
                await self._renew()

    async def _renew(self) -> None:
        held = list(self._held)
        if not held:
            return
        await self._store.run("renew_places", [KEY], self._milliseconds, *held)
        # Given back while the renewal was on its way, which may have taken it again.
        for place in held:
            if place not in self._held:
                await self._return(place)

    def _start(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
