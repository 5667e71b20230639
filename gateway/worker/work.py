"""One job at a time: begun by its lease, answered with the subject's rights, ended once."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar, cast

import structlog

from chassis import deadlines, identity
from chassis.deadlines import Deadline
from chassis.errors import SluiceError
from gateway.departure import alongside
from gateway.flow import Flow
from gateway.jobs import measures
from gateway.jobs.job import OUTAGES, PASSING, State, ending_of
from gateway.jobs.leases import Attempt, Leases
from gateway.jobs.wire import answer_bytes, question_in
from gateway.store import StoreLost
from sluice.evidence.v1.evidence_pb2 import Passage, Source

# Shares of a lease: renewals, and the longest that a worker stays deaf to a job's cancellation.
RENEWAL = 0.2
LONGEST_RENEWAL = 1.0
# A third attempt waits this many times as long as the second, up to so many seconds.
GROWTH, LONGEST_RETRY = 4.0, 600.0
STORE_PAUSE = 0.5
LOOK_EVERY = 1.0

T = TypeVar("T")
Settle = Callable[[], Awaitable[None]]

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Ending:
    """What an attempt came to. With `again` another one may come to something better."""

    state: State
    reason: str = ""
    answer: bytes = b""
    again: bool = False
    outage: bool = False


@dataclass(frozen=True, slots=True)
class Patience:
    """Most seconds of one attempt, and seconds before the second."""

    attempt: float
    retry: float

    def before(self, attempt: int) -> float:
        """Seconds to wait after this attempt, the first of which is 1."""
        return min(self.retry * GROWTH ** (attempt - 1), LONGEST_RETRY)


class Work:
    """Performs jobs. Whatever happens to it on the way, the leases bring the job to an end."""

    def __init__(self, leases: Leases, flow: Flow[Passage, Source], patience: Patience) -> None:
        self._leases = leases
        self._flow = flow
        self._patience = patience
        self._running: set[asyncio.Task[None]] = set()
        self._waiting: set[asyncio.Task[None]] = set()

    async def perform(self, job_id: str, settle: Settle) -> None:
        """Bring the job on by one attempt. `settle` says that its queue entry is used up."""
        task = asyncio.create_task(self._perform(job_id, settle))
        for tasks in (self._running, self._waiting):
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        await task

    async def close(self) -> None:
        """Hand back what is still in work, for another worker to begin at once."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    async def watch(self, stop: asyncio.Event) -> None:
        """Do what is due by the clock until `stop`."""
        while not stop.is_set():
            try:
                lost = await self._leases.move_on()
            except StoreLost:
                lost = 0
            if lost:
                log.warning("workers_lost", jobs=lost)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), LOOK_EVERY)
        # They have begun nothing: their entries go to other workers.
        for task in self._waiting:
            task.cancel()

    async def _perform(self, job_id: str, settle: Settle) -> None:
        attempt = await self._begun(job_id)
        self._waiting.discard(cast("asyncio.Task[None]", asyncio.current_task()))
        if attempt is None:
            await settle()
            return
        with structlog.contextvars.bound_contextvars(job_id=job_id):
            try:
                await settle()
                await self._attempted(attempt)
            except asyncio.CancelledError:
                with contextlib.suppress(StoreLost):
                    await self._leases.hand_back(attempt)
                raise

    async def _begun(self, job_id: str) -> Attempt | None:
        while True:
            found = await _insisted(lambda: self._leases.begin(job_id))
            if not isinstance(found, float):
                return found
            await asyncio.sleep(found)

    async def _attempted(self, attempt: Attempt) -> None:
        async with self._held(attempt) as lost, alongside(self._ending(attempt)) as working:
            await asyncio.wait((working, lost), return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                log.info("job_taken_away")
                return
            ending = await working
            counted = await _insisted(lambda: self._told(attempt, ending))
        told = self._word(attempt, ending) if counted else "lost"
        measures.attempted(told)
        log.info("job_attempted", attempt=attempt.number, ending=told, reason=ending.reason)

    async def _told(self, attempt: Attempt, ending: Ending) -> bool:
        if self._goes_on(attempt, ending):
            seconds = self._patience.before(attempt.number)
            return await self._leases.postpone(
                attempt, seconds, ending.reason, outage=ending.outage
            )
        return await self._leases.finish(attempt, ending.state, ending.reason, ending.answer)

    def _word(self, attempt: Attempt, ending: Ending) -> str:
        return "postponed" if self._goes_on(attempt, ending) else ending.state.value

    def _goes_on(self, attempt: Attempt, ending: Ending) -> bool:
        return ending.again and attempt.number < self._leases.pace.attempts

    async def _ending(self, attempt: Attempt) -> Ending:
        if attempt.caller is None:
            return Ending(State.FAILED, "RIGHTS_UNKNOWN")
        identity.enter(attempt.caller)
        deadlines.enter(Deadline.after(self._patience.attempt))
        try:
            answer = await self._flow.ask(question_in(attempt.question))
        except SluiceError as error:
            return Ending(State.FAILED, error.reason)
        except Exception:  # the edge of the process: a job ends, whatever happens
            log.exception("job_failed")
            return Ending(State.FAILED, "INTERNAL")
        outcome = answer.written.outcome
        state = ending_of(outcome)
        return Ending(
            state,
            outcome.reason if state is State.FAILED or outcome.reason in PASSING else "",
            answer_bytes(answer),
            again=outcome.reason in PASSING,
            outage=outcome.reason in OUTAGES,
        )

    @contextlib.asynccontextmanager
    async def _held(self, attempt: Attempt) -> AsyncIterator[asyncio.Task[None]]:
        """A task that ends once the attempt does not count any more, and renews it until then."""
        pause = min(self._leases.pace.lease * RENEWAL, LONGEST_RENEWAL)

        async def hold() -> None:
            counts = True
            while counts:
                await asyncio.sleep(pause)
                with contextlib.suppress(StoreLost):
                    counts = await self._leases.renew(attempt)

        async with alongside(hold()) as holding:
            yield holding


async def _insisted(step: Callable[[], Awaitable[T]]) -> T:
    """What the step returns, however long Redis is lost: only then is it known what is true."""
    while True:
        try:
            return await step()
        except StoreLost:
            await asyncio.sleep(STORE_PAUSE)
