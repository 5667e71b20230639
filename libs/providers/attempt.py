"""One physical call: reserved in the shared bucket, bounded in time, its failures made ours."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx2
from openai import AsyncOpenAI

from capacity import Reservation, SharedBucket, Workload
from chassis import deadlines
from chassis.deadlines import Deadline
from chassis.errors import DeadlineExceeded, SluiceError
from providers import classify, failures, quota
from providers.credentials import Tokens
from providers.time_limit import TimeLimit
from providers.transport import Transport

T = TypeVar("T")

# Batch work that was started without a deadline still does not wait for ever.
BATCH_WAIT = 600.0
# Seconds that the pool cools down where a throttle does not say how long, or says not at all.
UNSAID = 2.0
# Most that inputs nobody counted are taken for: a common size, never the whole limit.
UNCOUNTED_TOKENS = 4_000
# A report above it is no count of one call's tokens.
LARGEST_USAGE = 10_000_000


def connect(base_url: str, key: str | Tokens, attempt_timeout: float) -> AsyncOpenAI:
    """A client that never repeats a call. Of the environment it takes proxies and nothing else."""
    # Where a proxy is to be spoken to, the client's own way does so.
    transport = None if _is_proxied(base_url) else Transport(httpx2.create_ssl_context())
    sending = httpx2.AsyncClient(transport=transport, follow_redirects=True)
    client = AsyncOpenAI(
        base_url=base_url,
        # Local endpoints need no key, but the client insists on one.
        api_key=key or "unused",
        max_retries=0,
        timeout=attempt_timeout,
        http_client=sending,
    )
    client.organization = client.project = None
    # It takes these from OPENAI_CUSTOM_HEADERS, over its key even, and offers no other way out.
    client._custom_headers = {}  # noqa: SLF001 - as above
    return client


def _is_proxied(base_url: str) -> bool:
    """Whether the environment names a proxy for the address."""
    address, proxies = urlsplit(base_url), getproxies()
    named = address.scheme in proxies or "all" in proxies
    return named and not proxy_bypass(address.netloc)


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
    async def begun(self, tokens: int, workload: Workload) -> AsyncIterator["Attempt"]:
        """Holds a reservation of `tokens` for the body, which waits within `Attempt.bounded`.

        Where the pool is short, interactive work waits in order of arrival if its turn comes
        within `patience`, and is refused at once otherwise; batch work waits within the request's
        deadline. Raises what `capacity` refuses with, and DeadlineExceeded.
        """
        async with self._reserved(tokens, workload) as reservation:
            request, own = deadlines.current(), Deadline.after(self.timeout)
            left = min(end.remaining() for end in (request, own) if end)
            limit = TimeLimit(left)
            attempt = Attempt(self.pool, self.bucket, reservation, request, own, limit)
            try:
                if left <= 0:
                    reservation.not_begun()
                    raise attempt.late()
                yield attempt
            finally:
                limit.close()
            if attempt.failure is None:
                self.bucket.available()

    def heard(self, headers: Mapping[str, str]) -> None:
        """The head of the provider's reply, as soon as it is there."""
        quota.observe(headers, self.pool)

    def _reserved(
        self, tokens: int, workload: Workload
    ) -> AbstractAsyncContextManager[Reservation]:
        if workload is Workload.INTERACTIVE:
            return self.bucket.reserve(tokens, workload, self.patience)
        return self.bucket.acquire(tokens, workload, deadlines.within(BATCH_WAIT).at)


@dataclass(slots=True)
class Attempt:
    """One call that has begun. `own` is its end, `request` that of the request it serves."""

    pool: str
    bucket: SharedBucket
    reservation: Reservation
    request: Deadline | None
    own: Deadline
    limit: TimeLimit
    failure: SluiceError | None = None

    def late(self) -> SluiceError:
        """Whose time it is that ends first."""
        if self.request is not None and self.request.at <= self.own.at:
            return DeadlineExceeded("the time for this request is over")
        return failures.AttemptTimeout("the model provider did not answer in time")

    async def bounded(self, wait: Callable[[], Awaitable[T]]) -> T:
        """What the provider says to a wait, of which one call may have several.

        The pool is told of a failure before it is raised: after a throttle no process starts
        another. Only what runs in here is bounded and classified, so the time that is over never
        cancels anything else. Raises DeadlineExceeded, and for the call's own failures one of
        `failures`.
        """
        if self.limit.over:
            # The reader took the time, which says nothing of the provider.
            self.failure = self.late()
            raise self.failure
        try:
            return await self._in_time(wait)
        except classify.RAISED as error:
            if classify.never_connected(error):
                self.reservation.not_begun()
            quota.observe(classify.headers(error), self.pool)
            failure = classify.failure(error, self.pool)
            await self.failed(failure)
            raise failure from error
        except SluiceError as failure:
            await self.failed(failure)
            raise

    async def failed(self, failure: SluiceError) -> None:
        """How the call ended, told to the pool."""
        self.failure = failure
        if isinstance(failure, failures.NoToken):
            self.reservation.not_begun()
        elif isinstance(failure, failures.Throttled):
            await self.bucket.cool_down(failure.retry_after or UNSAID)
        elif isinstance(failure, failures.SILENT):
            self.bucket.unavailable()
        elif isinstance(failure, failures.ANSWERED):
            self.bucket.available()

    async def _in_time(self, wait: Callable[[], Awaitable[T]]) -> T:
        try:
            with self.limit:
                return await wait()
        except TimeoutError as error:
            if not self.limit.over:
                raise
            raise self.late() from error
