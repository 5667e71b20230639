"""The pool's state in Redis: one atomic script and one round trip a step, within a time limit."""

import re
import struct
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Any

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from capacity.evaluation import Evaluation, Script, bulk
from capacity.pool import MICROSECONDS, REQUEST, Limits
from capacity.refusals import CapacityRefused, CapacityTooLarge, CapacityUnavailable
from capacity.reservation import Reservation
from capacity.snapshot import State

# A name with braces would change the hash tag, and so the Redis Cluster slot.
POOL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]*")
CONNECTIONS = 64
# The number of keys, three keys and the limits.
FIXED_ARGUMENTS = 5
TOO_LARGE, WAITING = 4, 6
REFUSALS = {
    1: ("CAPACITY_REQUESTS", "the provider's request allowance is used up for now"),
    2: ("CAPACITY_TOKENS", "the provider's token allowance is used up for now"),
    3: ("CAPACITY_IN_FLIGHT", "as many calls are in flight as the provider allows"),
    5: ("CAPACITY_COOLDOWN", "the provider asked everybody to wait"),
    7: ("CAPACITY_LAPSED", "the pool lost its state while this call waited for its turn"),
}
# Shares of the lease. It outlives two renewals that failed; a pool that lost its state opens only
# after every running attempt had its renewal, so renewals come a little sooner.
OPENING = 0.3
RENEWAL = 0.27


@cache
def script(name: str) -> Script:
    """The script in this folder with the parts that all share; `name` without its ending."""
    folder = files("capacity")
    parts = [folder / f"{part}.lua" for part in ("pool", f"{name}_plain", "rules", name)]
    return Script.of("".join(part.read_text("utf-8") for part in parts if part.is_file()))


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
        # A burst opens connections within its decisions' time: with greetings and introductions
        # each took four round trips, and on a busy machine one burst in eight came too late.
        protocol=2,
        driver_info=None,
    )
    return Redis.from_pool(pool)


class PoolStore:
    """Every method raises CapacityUnavailable when Redis does not answer in time.

    `decision_timeout`, `lease` and `ramp` are seconds.
    """

    def __init__(  # noqa: PLR0913 - each is a setting of its own
        self,
        redis: Redis,
        pool: str,
        limits: Limits,
        *,
        decision_timeout: float,
        lease: float,
        ramp: float,
    ) -> None:
        if not POOL_NAME.fullmatch(pool):
            raise ValueError(f"pool: a name of letters, digits and . _ : / -, not {pool!r}")
        if not (decision_timeout > 0 and lease > 0 and ramp > 0):
            raise ValueError("decision_timeout, lease, ramp_seconds: must be above 0 seconds")
        self._redis = redis
        self._evaluation = Evaluation(redis, decision_timeout)
        self.renewal = lease * RENEWAL
        keys = (f"sluice:{{{pool}}}:{part}".encode() for part in ("pool", "running", "waiting"))
        times = [round(seconds * MICROSECONDS) for seconds in (lease, lease * OPENING, ramp)]
        # Microseconds for which a pool without state stays closed.
        self.opening = times[1]
        packed = struct.pack("<14d", *times, REQUEST, *limits.numbers())
        self._common = b"".join(bulk(argument) for argument in (b"3", *keys, packed))

    async def reserve(self, reservation: Reservation, max_wait: float = 0.0) -> float:
        """Seconds until it may begin: 0 at once, else `begin` is called then.

        Raises CapacityRefused or CapacityTooLarge; running it again changes nothing.
        """
        longest = (int(max_wait * MICROSECONDS),) if max_wait > 0 else ()
        return _wait(await self._run("reserve", reservation.member, *longest), reservation)

    async def begin(self, reservation: Reservation) -> float:
        """As `reserve`. A refusal gave back what was charged."""
        return _wait(await self._run("begin", reservation.member), reservation)

    async def settle(self, member: bytes, used: int) -> None:
        """`used` as Reservation.settlement().

        Running it again, late, or for an unknown reservation changes nothing.
        """
        await self._run("settle", member, used)

    async def renew(self, reservations: Iterable[Reservation]) -> int:
        """How many had lost their state and are registered again.

        Gives the pool its state if it has none; with no reservations, changes nothing else.
        """
        added = await self._run("renew", *(one.member for one in reservations))
        return int(added)

    async def cool_down(self, seconds: float) -> float:
        """Seconds until the end that holds, which is the later of the known ones."""
        left = await self._run("cool_down", round(seconds * MICROSECONDS))
        return int(left) / MICROSECONDS

    async def state(self) -> State | None:
        """None while the pool has none."""
        reply = await self._run("snapshot")
        if not reply:
            return None
        places, batch_places, waiting, opens_in, cooldown, ramp_left, ramp, *levels = reply
        return State(
            places, batch_places, waiting, opens_in, cooldown, ramp_left, ramp, tuple(levels)
        )

    async def close(self) -> None:
        self._evaluation.close()
        await self._redis.aclose()

    async def _run(self, name: str, *arguments: bytes | int) -> Any:  # noqa: ANN401 - see scripts
        rest = b"".join(bulk(one if isinstance(one, bytes) else b"%d" % one) for one in arguments)
        count = FIXED_ARGUMENTS + len(arguments)
        try:
            return await self._evaluation.run(script(name), count, self._common + rest)
        except (RedisError, OSError, TimeoutError) as error:
            raise _unavailable() from error


def _unavailable() -> CapacityUnavailable:
    return CapacityUnavailable("the shared capacity cannot be asked")


def _wait(reply: int | list[int], reservation: Reservation) -> float:
    if isinstance(reply, int):
        return 0.0
    code, wait = reply
    if code == WAITING:
        # One that may begin right now is still to begin.
        return max(wait, 1) / MICROSECONDS
    if code == TOO_LARGE:
        raise CapacityTooLarge(
            f"{reservation.tokens} tokens are more than {reservation.workload} can ever get",
            field="tokens",
        )
    reason, message = REFUSALS[code]
    retry_after = wait / MICROSECONDS if wait >= 0 else None
    raise CapacityRefused(message, reason=reason, retry_after=retry_after)
