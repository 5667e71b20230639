"""A pool on a real server, and what is left in it, seen through its refusals alone."""

import time
import uuid
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from capacity import CapacityRefused, Limits, SharedBucket, Workload

TOKENS = 100_000
REQUESTS = 1_000
PLACES = 2
SECONDS_A_TOKEN = 60
PATIENCE = 10.0  # seconds


def _limits(requests: int, tokens: int) -> Limits:
    """Limits that refill by so many requests and tokens a minute."""
    return Limits(
        requests_per_minute=REQUESTS + requests,
        tokens_per_minute=TOKENS + tokens,
        in_flight=PLACES,
        max_reservation=TOKENS,
        interactive_reserve=0,
        request_burst=REQUESTS,
        token_burst=TOKENS,
    )


# Refilled by one token a minute, so that what is missing is what the test's own calls took.
SLOW = _limits(1, 60 // SECONDS_A_TOKEN)
# Full again within two milliseconds.
FAST = _limits(60_000 * REQUESTS, 60_000 * TOKENS)


@dataclass(frozen=True, slots=True)
class Pool:
    """`replica` is what another process has of the same pool.

    Both measures reserve and give back, and must not run while a call begins or ends.
    """

    bucket: SharedBucket
    replica: SharedBucket

    async def places_taken(self) -> int:
        async with AsyncExitStack() as held:
            for taken in range(PLACES, -1, -1):
                try:
                    probe = await held.enter_async_context(
                        self.bucket.reserve(1, Workload.INTERACTIVE)
                    )
                except CapacityRefused:
                    return taken
                probe.not_begun()
        raise AssertionError(f"more than {PLACES} calls at once were admitted")

    async def tokens_spent(self) -> int:
        try:
            async with self.bucket.reserve(TOKENS, Workload.INTERACTIVE) as probe:
                probe.not_begun()
        except CapacityRefused as refusal:
            if refusal.retry_after is None:
                raise
            return round(refusal.retry_after / SECONDS_A_TOKEN)
        return 0


@asynccontextmanager
async def full_pool(url: str) -> AsyncIterator[Pool]:
    """A pool of its own with full buckets."""
    name = uuid.uuid4().hex
    filling = SharedBucket.connect(url, name, FAST, decision_timeout=5, lease=0.05, local_share=0)
    bucket, replica = (
        SharedBucket.connect(url, name, SLOW, decision_timeout=5, local_share=0) for _ in range(2)
    )
    pool = Pool(bucket, replica)
    try:
        deadline = time.monotonic() + PATIENCE
        # What the filling bucket leaves is forgotten within milliseconds, and a pool that was
        # forgotten begins empty: a busy machine may need more than one try.
        while not await _fills(filling, pool, deadline):
            assert time.monotonic() < deadline, "no full pool in time"
        yield pool
    finally:
        await filling.close()
        await bucket.close()
        await replica.close()


async def _fills(filling: SharedBucket, pool: Pool, deadline: float) -> bool:
    """Whether the pool is full; it stays so from then on, since it was looked at."""
    async with filling.acquire(TOKENS, Workload.INTERACTIVE, deadline) as reservation:
        reservation.report(0)
    return await pool.tokens_spent() == 0 and await pool.places_taken() == 0
