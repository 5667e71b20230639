"""One publisher a tenant at a time: a lease in Redis that lapses by itself."""

import asyncio
import random
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

import structlog
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from chassis import deadlines
from chassis.errors import Conflict, Unavailable
from corpus.identity import hash_of

TIME_LIMIT = 8.0  # seconds without an extension after which a publisher counts as dead
QUIET = 1.0  # seconds after a failed publisher in which a late write of its can still arrive
WAIT = 60.0
COMMAND_LIMIT = 1.0
PAUSES = (0.01, 0.1)

_EXTEND = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
"""
_RELEASE = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
"""

log = structlog.get_logger()


def connect(url: str) -> Redis:
    """A client that never repeats a command and waits for none longer than COMMAND_LIMIT."""
    return Redis.from_url(
        url,
        socket_timeout=COMMAND_LIMIT,
        socket_connect_timeout=COMMAND_LIMIT,
        retry=Retry(NoBackoff(), 0),
    )


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to publish for one tenant. `token` is nobody else's."""

    redis: Redis
    key: str
    token: str
    time_limit: float

    async def extend(self) -> None:
        """Make sure that the lease is held and lasts for TIME_LIMIT from now.

        Called before every write, so that no write begins after another publisher could have.
        Raises Conflict (LEASE_LOST) and Unavailable (LEASE_UNAVAILABLE).
        """
        if not await self._run(_EXTEND, round(self.time_limit * 1_000)):
            raise Conflict("another publisher took over", reason="LEASE_LOST")

    async def release(self) -> None:
        """Let the next one in at once. A lease that was lost is no error."""
        await self._run(_RELEASE)

    async def shorten(self, seconds: float) -> None:
        """Let the next one in after `seconds`."""
        await self._run(_EXTEND, max(1, round(seconds * 1_000)))

    async def _run(self, script: str, *arguments: int) -> int:
        try:
            return int(await self.redis.eval(script, 1, self.key, self.token, *arguments))
        except RedisError as failure:
            raise _unavailable(failure) from failure


class Leases:
    """Hands out leases. Times are in seconds."""

    def __init__(
        self, redis: Redis, *, time_limit: float = TIME_LIMIT, quiet: float = QUIET
    ) -> None:
        self._redis = redis
        self._time_limit = time_limit
        self._quiet = quiet

    @asynccontextmanager
    async def hold(self, tenant: str) -> AsyncIterator[Lease]:
        """The tenant's lease, waited for within the request's deadline and at most WAIT.

        Raises Unavailable: PUBLISH_BUSY when it was not free in time, LEASE_UNAVAILABLE when Redis
        does not answer.
        """
        key = f"sluice:publish:{hash_of(tenant)}"
        lease = Lease(self._redis, key, secrets.token_hex(16), self._time_limit)
        await self._take(lease)
        is_done = False
        try:
            yield lease
            is_done = True
        finally:
            # A lease that is not given back lapses.
            with suppress(Unavailable):
                await (lease.release() if is_done else lease.shorten(self._quiet))

    async def check(self) -> None:
        """Raises Unavailable while Redis does not answer."""
        try:
            await self._redis.ping()
        except RedisError as failure:
            raise _unavailable(failure) from failure

    async def close(self) -> None:
        await self._redis.aclose()

    async def _take(self, lease: Lease) -> None:
        deadline = deadlines.within(WAIT)
        while not await self._taken(lease):
            pause = random.uniform(*PAUSES)  # noqa: S311 - it spreads waiters and guards nothing
            if deadline.remaining() <= pause:
                raise Unavailable(
                    "another document of this tenant is being published",
                    reason="PUBLISH_BUSY",
                    retry_after=1.0,
                )
            await asyncio.sleep(pause)

    async def _taken(self, lease: Lease) -> bool:
        milliseconds = round(self._time_limit * 1_000)
        try:
            return bool(await self._redis.set(lease.key, lease.token, nx=True, px=milliseconds))
        except RedisError as failure:
            raise _unavailable(failure) from failure


def _unavailable(failure: RedisError) -> Unavailable:
    log.warning("lease_failed", problem=str(failure))
    return Unavailable("the publishing lease cannot be reached", reason="LEASE_UNAVAILABLE")
