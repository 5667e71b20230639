"""One physical call: reserved in the shared bucket, bounded in time, its failures made ours."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass

from openai import AsyncOpenAI

from capacity import Reservation, SharedBucket, Workload
from chassis import deadlines
from chassis.deadlines import Deadline
from chassis.errors import DeadlineExceeded, SluiceError
from providers import failures, quota

# Batch work that was started without a deadline still does not wait for ever.
BATCH_WAIT = 600.0
# Seconds that the pool cools down where a throttle does not say how long, or says not at all.
UNSAID = 2.0
# Most that inputs nobody counted are taken for: a common size, never the whole limit.
UNCOUNTED_TOKENS = 4_000
# A report above it is no count of one call's tokens.
LARGEST_USAGE = 10_000_000


def connect(base_url: str, api_key: str, attempt_timeout: float) -> AsyncOpenAI:
    """A client that never repeats a call and takes nothing from the environment."""
    # Local endpoints need no key, but the client insists on one.
    client = AsyncOpenAI(
        base_url=base_url, api_key=api_key or "unused", max_retries=0, timeout=attempt_timeout
    )
    client.organization = client.project = None
    return client


def estimate(counts: Sequence[int], texts: Sequence[str]) -> int:
    """Tokens of `texts`, at least 1; those with a count below 1 were not counted.

    A token is at least a byte of the text, so the bytes of those, within a bound, stand in.
    """
    counted = sum(count for count in counts if count > 0)
    uncounted = (text for count, text in zip(counts, texts, strict=True) if count < 1)
    size = sum(len(text.encode(errors="replace")) for text in uncounted)
    return max(1, counted + min(size, UNCOUNTED_TOKENS))


@dataclass(frozen=True, slots=True)
class Attempts:
    """How the calls of one pool are made.

    `timeout` bounds a single one, `patience` the wait of interactive work for its start, both in
    seconds.
    """

    pool: str
    bucket: SharedBucket
    timeout: float
    patience: float = 0.0

    @asynccontextmanager
    async def one(self, tokens: int, workload: Workload) -> AsyncIterator[Reservation]:
        """Holds a reservation of `tokens` for the body, which makes one call.

        Where the pool is short, interactive work waits in order of arrival if its turn comes
        within `patience`, and is refused at once otherwise; batch work waits within the request's
        deadline. How the call ends is told to the pool before this returns: after a throttle no
        process starts another. Raises what `capacity` refuses with, DeadlineExceeded, and for the
        call's own failures one of `failures`.
        """
        async with self._reserved(tokens, workload) as reservation, self._told():
            try:
                async with self._bounded(reservation):
                    yield reservation
            except failures.RAISED as error:
                if failures.never_connected(error):
                    reservation.not_begun()
                self.heard(failures.headers(error))
                raise failures.classify(error, self.pool) from error

    def heard(self, headers: Mapping[str, str]) -> None:
        """The head of the provider's reply, as soon as it is there."""
        quota.observe(headers, self.pool)

    @asynccontextmanager
    async def _told(self) -> AsyncIterator[None]:
        try:
            yield
        except failures.Throttled as throttled:
            await self.bucket.cool_down(throttled.retry_after or UNSAID)
            raise
        except failures.SILENT:
            self.bucket.unavailable()
            raise
        except failures.ANSWERED:
            self.bucket.available()
            raise
        self.bucket.available()

    def _reserved(
        self, tokens: int, workload: Workload
    ) -> AbstractAsyncContextManager[Reservation]:
        if workload is Workload.INTERACTIVE:
            return self.bucket.reserve(tokens, workload, self.patience)
        return self.bucket.acquire(tokens, workload, deadlines.within(BATCH_WAIT).at)

    @asynccontextmanager
    async def _bounded(self, reservation: Reservation) -> AsyncIterator[None]:
        request, own = deadlines.current(), Deadline.after(self.timeout)
        limit = deadlines.within(self.timeout).remaining()
        if limit <= 0:
            reservation.not_begun()
            raise DeadlineExceeded("the time for this request is over")
        try:
            async with asyncio.timeout(limit) as clock:
                yield
        except TimeoutError as error:
            if not clock.expired():
                raise
            raise _timed_out(request, own) from error


def _timed_out(request: Deadline | None, own: Deadline) -> SluiceError:
    if request is not None and request.at <= own.at:
        return DeadlineExceeded("the time for this request is over")
    return failures.AttemptTimeout("the model provider did not answer in time")
