"""The shared bucket as a caller sees it: reserve before an attempt, settle after it, once."""

import asyncio
import contextlib
import random
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Self

import structlog
from redis.asyncio import Redis

from capacity.circuit import Circuit
from capacity.local_share import LocalShare
from capacity.measures import Measures
from capacity.pool import Limits, Workload
from capacity.refusals import CapacityCircuitOpen, CapacityRefused, CapacityUnavailable
from capacity.reservation import NEVER_BEGAN, UNKNOWN, Reservation
from capacity.snapshot import Mode, Snapshot, State
from capacity.store import PoolStore, connect
from chassis import deadlines
from chassis.errors import SluiceError

log = structlog.get_logger()

# Seconds, all of them.
DECISION_TIMEOUT = 0.05
LEASE = 10.0
RAMP = 10.0
# How often a lost Redis is asked whether it is back.
PROBE = 0.25
# No provider's answer closes a pool for longer.
LONGEST_COOLDOWN = 3_600.0
# How long `acquire` waits where no time is known, and at least.
LEAST_PAUSE = 0.01
FIRST_PAUSE = 0.05
LONGEST_PAUSE = 1.0
# A start that others' debts put off by less is still the one that was promised.
SLACK = 0.01

JITTER = 0.25
UNSETTLED = 1_000
LOCAL_SHARE = 0.05
MAX_PROCESSES = 8


class SharedBucket:
    """One process's share in one pool.

    `decision_timeout`, `lease` and `ramp_seconds` (how long the refill climbs after a cooldown) are
    seconds. `local_share` of each limit is set aside for the time without Redis, when each of at
    most `max_processes` processes may use its part of it; with 0 the pool is closed then. The
    client is closed with the bucket and must not repeat commands by itself;
    `SharedBucket.connect` makes such a one. Raises InvalidLimit.
    """

    def __init__(  # noqa: PLR0913 - each is a setting of its own
        self,
        redis: Redis,
        pool: str,
        limits: Limits,
        *,
        decision_timeout: float = DECISION_TIMEOUT,
        lease: float = LEASE,
        local_share: float = LOCAL_SHARE,
        max_processes: int = MAX_PROCESSES,
        ramp_seconds: float = RAMP,
    ) -> None:
        self._pool = pool
        self._limits = limits.shared(local_share)
        self._store = PoolStore(
            redis,
            pool,
            self._limits,
            decision_timeout=decision_timeout,
            lease=lease,
            ramp=ramp_seconds,
        )
        self._local = LocalShare(limits.local(local_share, max_processes), time.monotonic)
        self._circuit = Circuit(time.monotonic)
        self._measures = Measures(pool)
        self._measures.mode(Mode.SHARED)
        self._lost = False
        self._cool_end = 0.0
        self._held: dict[bytes, Reservation] = {}
        # What Redis has not acknowledged: settled again as soon as it answers. The oldest are
        # forgotten first, since their leases lapse anyway.
        self._unsettled: dict[bytes, int] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._renewal: asyncio.Task[None] | None = None
        self._recovery: asyncio.Task[None] | None = None

    @classmethod
    def connect(  # noqa: PLR0913 - each is a setting of its own
        cls,
        url: str,
        pool: str,
        limits: Limits,
        *,
        decision_timeout: float = DECISION_TIMEOUT,
        lease: float = LEASE,
        local_share: float = LOCAL_SHARE,
        max_processes: int = MAX_PROCESSES,
        ramp_seconds: float = RAMP,
    ) -> Self:
        """A bucket with a client of its own. Nothing is sent before the first reservation."""
        return cls(
            connect(url, decision_timeout),
            pool,
            limits,
            decision_timeout=decision_timeout,
            lease=lease,
            local_share=local_share,
            max_processes=max_processes,
            ramp_seconds=ramp_seconds,
        )

    @property
    def mode(self) -> Mode:
        if not self._lost:
            return Mode.SHARED
        return Mode.LOCAL_SHARE if self._local.limits else Mode.CLOSED

    def reserve(
        self, tokens: int, workload: Workload, max_wait: float = 0.0
    ) -> AbstractAsyncContextManager[Reservation]:
        """Room for one attempt of `tokens` estimated tokens, settled when the block is left.

        Decides at once; with `max_wait` seconds, interactive work that finds the rate short may be
        promised a start within them, in order of arrival, and waits for it here, never beyond the
        request's own deadline. Raises CapacityRefused, CapacityTooLarge, CapacityCircuitOpen (none
        of which changed anything) or CapacityUnavailable.
        """
        return _Attempt(Reservation(workload, tokens), self._take, max_wait, self._give_back)

    def acquire(
        self, tokens: int, workload: Workload, deadline: float
    ) -> AbstractAsyncContextManager[Reservation]:
        """As `reserve`, but a refusal is waited out while `time.monotonic()` is below `deadline`.

        Raises the refusal as soon as the deadline comes before the time it can be granted.
        """
        return _Attempt(
            Reservation(workload, tokens), self._take_in_time, deadline, self._give_back
        )

    async def cool_down(self, seconds: float) -> None:
        """Nothing more is admitted in the pool for so long, by any process and in either class.

        The later of the known ends wins; an hour at most. Then the refill climbs over the ramp.
        """
        if not seconds > 0:
            return
        seconds = min(seconds, LONGEST_COOLDOWN)
        self._cool_end = max(self._cool_end, time.monotonic() + seconds)
        self._local.cool_down(seconds)
        self._keep_up()
        if self._lost:
            return
        try:
            await self._tell_cooldown()
        except CapacityUnavailable as error:
            self._lose(error)

    def unavailable(self) -> None:
        """An attempt found the provider unavailable. Several in a row open the circuit."""
        self._circuit.failed()

    def available(self) -> None:
        """An attempt was answered, which closes the circuit."""
        self._circuit.succeeded()

    async def snapshot(self) -> Snapshot:
        """What the pool holds now, or this process's own share while Redis is lost."""
        state: State | None = None
        limits: Limits | None = self._limits
        if not self._lost:
            try:
                state = await self._seen()
            except CapacityUnavailable as error:
                self._lose(error)
        if state is None:
            state, limits = self._local.state(), self._local.limits
        seen = Snapshot.measure(limits, state, self.mode, self._circuit.state)
        self._measures.seen(seen)
        return seen

    async def _seen(self) -> State:
        """Who only looks may have a connection from before Redis restarted: one more look."""
        try:
            state = await self._store.state()
        except CapacityUnavailable:
            state = await self._store.state()
        return state or State(opens_in=self._store.opening)

    async def check(self) -> None:
        """Raises CapacityUnavailable when Redis does not decide in time.

        Takes nothing, but gives a pool its state: one that is checked at a process's start has
        opened before the first call.
        """
        try:
            await self._store.renew([])
        except CapacityUnavailable as error:
            self._lose(error)
            raise

    async def close(self) -> None:
        """Finish what is being settled, then close the client. Callers have stopped before."""
        upkeep = [task for task in (self._renewal, self._recovery) if task]
        for task in upkeep:
            task.cancel()
        if upkeep:
            await asyncio.wait(upkeep)
        await asyncio.gather(*self._tasks)
        with contextlib.suppress(CapacityUnavailable):
            await self._settle_again()
        await self._store.close()

    async def _take(self, reservation: Reservation, max_wait: float = 0.0) -> None:
        is_granted = False
        try:
            self._circuit.admit(reservation)
            if self._lost or not await self._take_shared(reservation, max_wait):
                self._local.reserve(reservation)
            is_granted = True
        except SluiceError as error:
            self._measures.refused(reservation, error.reason)
            raise
        finally:
            if not is_granted:
                self._circuit.ended(reservation)
        self._measures.granted(reservation)
        if not reservation.local:
            self._held[reservation.member] = reservation
            self._keep_up()

    async def _take_shared(self, reservation: Reservation, max_wait: float) -> bool:
        """False if Redis did not decide."""
        if max_wait > 0:
            max_wait = deadlines.within(max_wait).remaining()
        started = time.monotonic()
        try:
            try:
                wait = await self._store.reserve(reservation, max_wait)
            finally:
                self._measures.decided(time.monotonic() - started)
            if wait:
                await self._start_in(wait, reservation, started + max_wait)
        except asyncio.CancelledError:
            await self._shielded(self._undo(reservation.member))
            raise
        except CapacityUnavailable as error:
            # A stalled Redis may still grant it when it goes on.
            self._remember(reservation.member, NEVER_BEGAN)
            reservation.rename()
            self._lose(error)
            return False
        return True

    async def _start_in(self, wait: float, reservation: Reservation, latest: float) -> None:
        while wait:
            if time.monotonic() + wait > latest + SLACK:
                await self._settle_shielded(reservation.member, NEVER_BEGAN)
                raise CapacityRefused(
                    "its start was put off beyond the time that it may wait",
                    reason="CAPACITY_TOKENS",
                    retry_after=wait,
                )
            await asyncio.sleep(wait)
            wait = await self._store.begin(reservation)

    async def _take_in_time(self, reservation: Reservation, deadline: float) -> None:
        pause = FIRST_PAUSE
        while True:
            try:
                return await self._take(reservation)
            except (CapacityRefused, CapacityCircuitOpen) as refusal:
                wait = pause if refusal.retry_after is None else refusal.retry_after
                wait = max(wait, LEAST_PAUSE) * _jitter()
                if time.monotonic() + wait > deadline:
                    raise
            await asyncio.sleep(wait)
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _give_back(self, reservation: Reservation) -> None:
        self._circuit.ended(reservation)
        self._measures.settled(reservation)
        if reservation.local:
            self._local.settle(reservation)
            return
        member, used = reservation.member, reservation.settlement()
        del self._held[member]
        try:
            await self._settle(member, used)
        except asyncio.CancelledError:
            # Whether it was sent is not known; sending it again changes nothing.
            await self._settle_shielded(member, used)
            raise

    async def _undo(self, member: bytes) -> None:
        """Give back what was asked for a moment ago, whether it is granted already or not yet.

        The question may still be under way on a connection that was let go, and the first of these
        may overtake it; what is sent once that one is answered cannot.
        """
        await self._settle(member, NEVER_BEGAN)
        await self._settle(member, NEVER_BEGAN)

    async def _settle_shielded(self, member: bytes, used: int) -> None:
        await self._shielded(self._settle(member, used))

    async def _shielded(self, settling: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(settling)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        await asyncio.shield(task)

    async def _settle(self, member: bytes, used: int) -> None:
        if self._lost:
            self._remember(member, used)
            return
        try:
            await self._store.settle(member, used)
        except CapacityUnavailable as error:
            self._remember(member, used)
            self._lose(error)

    def _remember(self, member: bytes, used: int) -> None:
        self._unsettled[member] = used
        if len(self._unsettled) > UNSETTLED:
            del self._unsettled[next(iter(self._unsettled))]

    async def _settle_again(self) -> None:
        for member, used in list(self._unsettled.items()):
            await self._store.settle(member, used)
            self._unsettled.pop(member, None)

    def _lose(self, error: CapacityUnavailable) -> None:
        """Redis did not decide: this process's own share is in force until it is back."""
        if self._lost:
            return
        self._lost = True
        self._local.open()
        cause = error.__cause__
        log.warning(
            "capacity_lost",
            pool=self._pool,
            mode=self.mode.value,
            error=f"{type(cause).__name__}: {cause}",
        )
        self._measures.mode(self.mode)
        self._recovery = asyncio.create_task(self._recover())

    async def _recover(self) -> None:
        """Asks until Redis is back, whether there is traffic or not."""
        while True:
            with contextlib.suppress(CapacityUnavailable):
                await self._renew_held()
                await self._tell_cooldown()
                await self._settle_again()
                break
            await asyncio.sleep(PROBE)
        self._lost = False
        log.warning("capacity_restored", pool=self._pool)
        self._measures.mode(self.mode)

    def _keep_up(self) -> None:
        if self._renewal is None:
            self._renewal = asyncio.create_task(self._renew())

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(self._store.renewal)
            if self._lost:
                continue
            # What fails is tried again when Redis is back: a lease outlives two renewals.
            try:
                if self._held:
                    await self._renew_held()
                await self._tell_cooldown()
            except CapacityUnavailable as error:
                self._lose(error)

    async def _renew_held(self) -> None:
        held = list(self._held.values())
        await self._store.renew(held)
        for reservation in held:
            # Settled while the renewal was on its way, which may have registered it again.
            if reservation.member not in self._held:
                await self._store.settle(reservation.member, UNKNOWN)

    async def _tell_cooldown(self) -> None:
        """A pool that lost its state lost its cooldown too."""
        left = self._cool_end - time.monotonic()
        if left > 0:
            await self._store.cool_down(left)


class _Attempt(AbstractAsyncContextManager[Reservation]):
    """Takes within `limit`, and gives back on whatever way the block is left."""

    __slots__ = ("_give_back", "_limit", "_reservation", "_take")

    def __init__(
        self,
        reservation: Reservation,
        take: Callable[[Reservation, float], Awaitable[None]],
        limit: float,
        give_back: Callable[[Reservation], Awaitable[None]],
    ) -> None:
        self._reservation = reservation
        self._take = take
        self._limit = limit
        self._give_back = give_back

    async def __aenter__(self) -> Reservation:
        await self._take(self._reservation, self._limit)
        return self._reservation

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._give_back(self._reservation)


def _jitter() -> float:
    """A factor from 1 upwards: nobody comes back before there can be room."""
    return 1 + JITTER * random.random()  # noqa: S311 - it spreads waiters and guards nothing
