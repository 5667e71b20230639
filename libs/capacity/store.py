"""The pool's state in Redis: one atomic script and one round trip a step, within a time limit."""

import asyncio
import hashlib
import re
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Self

import structlog
from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import NoScriptError, RedisError

from capacity.pool import MICROSECONDS, REQUEST, TOKEN, Limits, Workload
from capacity.refusals import CapacityRefused, CapacityTooLarge, CapacityUnavailable
from capacity.reservation import Reservation

log = structlog.get_logger()

# A name with braces would change the hash tag, and so the Redis Cluster slot.
POOL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]*")
CONNECTIONS = 64
GRANTED, TOO_LARGE = 0, 4
REFUSALS = {
    1: ("CAPACITY_REQUESTS", "the provider's request allowance is used up for now"),
    2: ("CAPACITY_TOKENS", "the provider's token allowance is used up for now"),
    3: ("CAPACITY_IN_FLIGHT", "as many calls are in flight as the provider allows"),
}
UNKNOWN = -1
# Shares of the lease. It outlives two renewals that failed; a pool that lost its state opens only
# after every running attempt had its renewal, so renewals come a little sooner.
OPENING = 0.3
RENEWAL = 0.27


@dataclass(frozen=True, slots=True)
class Script:
    text: str
    digest: str

    @classmethod
    @cache
    def load(cls, name: str) -> Self:
        """The script behind the part that all share; `name` without its ending."""
        folder = files("capacity")
        text = "".join((folder / f"{part}.lua").read_text("utf-8") for part in ("pool", name))
        # SHA-1 is how Redis names scripts.
        return cls(text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())


def connect(url: str, decision_timeout: float) -> Redis:
    """A client that never repeats a command; `decision_timeout` is seconds.

    `url` as redis-py takes it: redis://, rediss:// or unix://.
    """
    pool = BlockingConnectionPool.from_url(
        url,
        max_connections=CONNECTIONS,
        timeout=decision_timeout,
        retry=Retry(NoBackoff(), 0),
        # One limit spans the whole decision; a second timer on each read would only cost.
        socket_timeout=None,
        socket_connect_timeout=decision_timeout,
    )
    return Redis.from_pool(pool)


class PoolStore:
    """Every method raises CapacityUnavailable when Redis does not answer in time."""

    def __init__(
        self, redis: Redis, pool: str, limits: Limits, *, decision_timeout: float, lease: float
    ) -> None:
        if not POOL_NAME.fullmatch(pool):
            raise ValueError(f"pool: a name of letters, digits and . _ : / -, not {pool!r}")
        if not (decision_timeout > 0 and lease > 0):
            raise ValueError("decision_timeout, lease: must be above 0 seconds")
        self._redis = redis
        self._pool = pool
        self._timeout = decision_timeout
        self.answers = True
        self._keys = tuple(f"sluice:{{{pool}}}:{part}" for part in ("state", "leases"))
        self.renewal = lease * RENEWAL
        times = (round(seconds * MICROSECONDS) for seconds in (lease, lease * OPENING))
        self._limits = struct.pack("<13d", *times, REQUEST, *limits.numbers())

    async def reserve(self, reservation: Reservation) -> None:
        """Raises CapacityRefused or CapacityTooLarge; running it again changes nothing."""
        code, wait = await self._run("reserve", *_identity(reservation))
        if code == TOO_LARGE:
            raise CapacityTooLarge(
                f"{reservation.tokens} tokens are more than {reservation.workload} can ever get",
                field="tokens",
            )
        if code != GRANTED:
            reason, message = REFUSALS[code]
            retry_after = wait / MICROSECONDS if wait >= 0 else None
            raise CapacityRefused(message, reason=reason, retry_after=retry_after)

    async def settle(self, reservation: Reservation) -> None:
        """Running it again, late, or for an unknown reservation changes nothing."""
        used = reservation.used
        tokens = UNKNOWN if used is None else used * TOKEN
        if reservation.begun:
            await self._run("settle", reservation.id, 1, tokens)
        else:
            await self._run("settle", reservation.id, 0, 0)

    async def vacate(self, reservation: Reservation) -> None:
        """Give back the place alone; what was charged stays charged."""
        await self._run("settle", reservation.id, 1, UNKNOWN)

    async def renew(self, reservations: Iterable[Reservation]) -> int:
        """How many had lost their state and are registered again."""
        identities = [part for held in reservations for part in _identity(held)]
        (added,) = await self._run("renew", *identities)
        return added

    async def check(self) -> None:
        """Give the pool its state if it has none, and change nothing else."""
        await self._run("renew", "")

    async def close(self) -> None:
        await self._redis.aclose()

    async def _run(self, name: str, *arguments: str | int) -> list[int]:
        try:
            async with asyncio.timeout(self._timeout):
                reply = await self._evaluate(Script.load(name), arguments)
        except (RedisError, OSError, TimeoutError) as error:
            self._tell(answers=False, error=repr(error))
            raise CapacityUnavailable("the shared capacity cannot be asked") from error
        self._tell(answers=True)
        return reply

    async def _evaluate(self, script: Script, arguments: tuple[str | int, ...]) -> list[int]:
        call = (*self._keys, self._limits, *arguments)
        reply: list[int]
        try:
            reply = await self._redis.evalsha(script.digest, len(self._keys), *call)
        except NoScriptError:
            reply = await self._redis.eval(script.text, len(self._keys), *call)
        return reply

    def _tell(self, *, answers: bool, **facts: str) -> None:
        """One line when it stops answering and one when it is back, however many decisions."""
        if answers != self.answers:
            self.answers = answers
            event = "capacity_restored" if answers else "capacity_unavailable"
            log.warning(event, pool=self._pool, **facts)


def _identity(reservation: Reservation) -> tuple[str, int, int]:
    batch = int(reservation.workload is Workload.BATCH)
    return reservation.id, batch, reservation.tokens * TOKEN
