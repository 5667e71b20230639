"""The shared bucket as a caller sees it: reserve before an attempt, settle after it, once."""

import asyncio
import contextlib
import random
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Self

from redis.asyncio import Redis

from capacity.pool import Limits, Workload
from capacity.refusals import CapacityRefused, CapacityUnavailable
from capacity.reservation import Reservation
from capacity.store import PoolStore, connect

DECISION_TIMEOUT = 0.05
LEASE = 10.0
# How long `acquire` waits where no time is known, and at least.
LEAST_PAUSE = 0.01
FIRST_PAUSE = 0.05
LONGEST_PAUSE = 1.0
JITTER = 0.25
UNSETTLED = 1_000


class SharedBucket:
    """One process's share in one pool.

    `decision_timeout` and `lease` are seconds. The client is closed with the bucket and must not
    repeat commands by itself; `SharedBucket.connect` makes such a one.
    """

    def __init__(
        self,
        redis: Redis,
        pool: str,
        limits: Limits,
        *,
        decision_timeout: float = DECISION_TIMEOUT,
        lease: float = LEASE,
    ) -> None:
        self._store = PoolStore(redis, pool, limits, decision_timeout=decision_timeout, lease=lease)
        self._held: dict[str, Reservation] = {}
        # What Redis has not acknowledged: settled again as soon as it answers. The oldest are
        # forgotten first, since their leases lapse anyway.
        self._unsettled: dict[str, Reservation] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._renewal: asyncio.Task[None] | None = None
        self._recovery: asyncio.Task[None] | None = None

    @classmethod
    def connect(
        cls,
        url: str,
        pool: str,
        limits: Limits,
        *,
        decision_timeout: float = DECISION_TIMEOUT,
        lease: float = LEASE,
    ) -> Self:
        """A bucket with a client of its own. Nothing is sent before the first reservation."""
        redis = connect(url, decision_timeout)
        return cls(redis, pool, limits, decision_timeout=decision_timeout, lease=lease)

    @asynccontextmanager
    async def reserve(self, tokens: int, workload: Workload) -> AsyncIterator[Reservation]:
        """Room for one attempt of `tokens` estimated tokens, settled when the block is left.

        Decides at once. Raises CapacityRefused, CapacityTooLarge (both changed nothing) or
        CapacityUnavailable.
        """
        reservation = Reservation(workload, tokens)
        await self._take(reservation)
        async with self._holding(reservation):
            yield reservation

    @asynccontextmanager
    async def acquire(
        self, tokens: int, workload: Workload, deadline: float
    ) -> AsyncIterator[Reservation]:
        """As `reserve`, but a refusal is waited out while `time.monotonic()` is below `deadline`.

        Raises the refusal as soon as the deadline comes before the time it can be granted.
        """
        reservation = Reservation(workload, tokens)
        await self._take_in_time(reservation, deadline)
        async with self._holding(reservation):
            yield reservation

    async def check(self) -> None:
        """Raises CapacityUnavailable when Redis does not decide in time.

        Takes nothing, but gives a pool its state: one that is checked at a process's start has
        opened before the first call.
        """
        await self._store.check()

    async def close(self) -> None:
        """Finish what is being settled, then close the client. Callers have stopped before."""
        if self._renewal:
            self._renewal.cancel()
            await asyncio.wait([self._renewal])
        await self._settle_again()
        await asyncio.gather(*self._tasks)
        await self._store.close()

    async def _take(self, reservation: Reservation) -> None:
        try:
            await self._store.reserve(reservation)
        except asyncio.CancelledError:
            reservation.not_begun()
            await self._settle_shielded(reservation)
            raise
        except CapacityUnavailable:
            # A stalled Redis may still grant it when it goes on.
            reservation.not_begun()
            self._remember(reservation)
            raise
        finally:
            self._catch_up()

    async def _take_in_time(self, reservation: Reservation, deadline: float) -> None:
        pause = FIRST_PAUSE
        while True:
            try:
                return await self._take(reservation)
            except CapacityRefused as refusal:
                wait = pause if refusal.retry_after is None else refusal.retry_after
                wait = max(wait, LEAST_PAUSE) * _jitter()
                if time.monotonic() + wait > deadline:
                    raise
            await asyncio.sleep(wait)
            pause = min(2 * pause, LONGEST_PAUSE)

    @asynccontextmanager
    async def _holding(self, reservation: Reservation) -> AsyncIterator[None]:
        self._held[reservation.id] = reservation
        if self._renewal is None:
            self._renewal = asyncio.create_task(self._renew_all())
        try:
            yield
        finally:
            del self._held[reservation.id]
            await self._settle_once(reservation)

    async def _settle_once(self, reservation: Reservation) -> None:
        try:
            await self._settle(reservation)
        except asyncio.CancelledError:
            # Whether it was sent is not known; sending it again changes nothing.
            await self._settle_shielded(reservation)
            raise

    async def _settle_shielded(self, reservation: Reservation) -> None:
        await asyncio.shield(self._start(self._settle(reservation)))

    async def _settle(self, reservation: Reservation) -> None:
        try:
            await self._store.settle(reservation)
        except CapacityUnavailable:
            self._remember(reservation)
        else:
            self._unsettled.pop(reservation.id, None)

    def _remember(self, reservation: Reservation) -> None:
        self._unsettled[reservation.id] = reservation
        if len(self._unsettled) > UNSETTLED:
            del self._unsettled[next(iter(self._unsettled))]

    def _catch_up(self) -> None:
        idle = self._recovery is None or self._recovery.done()
        if self._unsettled and self._store.answers and idle:
            self._recovery = self._start(self._settle_again())

    async def _settle_again(self) -> None:
        for reservation in list(self._unsettled.values()):
            await self._settle(reservation)
            if not self._store.answers:
                return

    def _start(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _renew_all(self) -> None:
        while True:
            await asyncio.sleep(self._store.renewal)
            # What fails is tried again at the next renewal: a lease outlives two that failed.
            with contextlib.suppress(CapacityUnavailable):
                await self._renew_held()
            self._catch_up()

    async def _renew_held(self) -> None:
        held = list(self._held.values())
        if not held:
            return
        await self._store.renew(held)
        for reservation in held:
            # Settled while the renewal was on its way, which may have registered it again.
            if reservation.id not in self._held:
                await self._store.vacate(reservation)


def _jitter() -> float:
    """A factor from 1 upwards: nobody comes back before there can be room."""
    return 1 + JITTER * random.random()  # noqa: S311 - it spreads waiters and guards nothing
