"""Where questions are handed in that may be answered later, and where jobs are asked after."""

import time
from collections.abc import Mapping
from typing import TypeAlias
from uuid import uuid4

import structlog

from chassis import deadlines, identity
from chassis.errors import NotFound, SluiceError, Unavailable
from gateway.admission import Admission, NoRoom, Stand
from gateway.answer import Answer, Written
from gateway.flow import Flow
from gateway.jobs.job import PASSING, Deferral, Job, is_id
from gateway.jobs.ledger import BacklogFull, Entry, Ledger
from gateway.jobs.wire import answer_in, question_bytes, question_in
from gateway.outcome import Mode, Outcome, Reason
from gateway.question import Question
from gateway.store import StoreLost
from gateway.telling import Event, Tell
from sluice.evidence.v1.evidence_pb2 import Passage, Source

# What a question is queued for that could not be answered at once. Of other reasons, such as an
# index that cannot be searched, the contract knows only that the caller wanted it so.
QUEUED_FOR: Mapping[Reason, Reason] = {
    Reason.MODEL_UNAVAILABLE: Reason.MODEL_UNAVAILABLE,
    Reason.CAPACITY: Reason.CAPACITY,
}
# A kept answer is looked at again in this time, or its content is not shown this time.
SHOW_SECONDS = 2.0

SourceJob: TypeAlias = Job[Source]

log = structlog.get_logger()


class JobsUnavailable(Unavailable):
    """No job can be accepted, looked at or cancelled now."""

    default_reason = "JOBS_UNAVAILABLE"


class Desk:
    """The one place for questions, whichever face they come through. Without a ledger no jobs."""

    def __init__(
        self,
        admission: Admission[Passage, Source],
        flow: Flow[Passage, Source],
        ledger: Ledger | None,
    ) -> None:
        self._admission = admission
        self._flow = flow
        self._ledger = ledger

    async def ask(
        self,
        question: Question,
        deferral: Deferral | None = None,
        stand: Stand = lambda _: None,
        tell: Tell[Source] | None = None,
    ) -> Answer[Source]:
        """The answer to the current caller's question, or that it is queued.

        Raises what the admission and the flow raise; for what is to be queued at once Conflict,
        NotFound, BacklogFull and JobsUnavailable as well.
        """
        if deferral is None:
            return await self._admission.ask(question, stand, tell)
        if deferral.wait:
            answer = await self._tried(question, deferral, stand, tell)
        else:
            async with self._admission.charged(stand):
                answer = await self._queued(question, deferral, Reason.REQUESTED)
        if tell is not None:
            await tell(answer)
        return answer

    async def look(self, job_id: str) -> SourceJob:
        """The current caller's job. Raises NotFound and JobsUnavailable."""
        return await self._shown(job_id, await self._entry(job_id))

    async def cancel(self, job_id: str) -> SourceJob:
        """As `look`, once the job has ended."""
        return await self._shown(job_id, await self._entry(job_id, cancel=True))

    async def _tried(
        self, question: Question, deferral: Deferral, stand: Stand, tell: Tell[Source] | None
    ) -> Answer[Source]:
        """The answer, or that it is queued since there was none in time, nor room for it."""
        try:
            answer = await self._asked(question, deferral.wait or 0, stand, tell)
        except NoRoom as refusal:
            try:
                return await self._queued(question, deferral, Reason.CAPACITY)
            except (BacklogFull, JobsUnavailable):
                raise refusal from None
        outcome = answer.written.outcome
        if outcome.mode is not Mode.UNAVAILABLE or outcome.reason not in PASSING:
            return answer
        reason = QUEUED_FOR.get(outcome.reason, Reason.REQUESTED)
        try:
            return await self._queued(question, deferral, reason)
        except (BacklogFull, JobsUnavailable):
            return answer

    async def _asked(
        self, question: Question, seconds: float, stand: Stand, tell: Tell[Source] | None
    ) -> Answer[Source]:
        async def tell_the_way(event: Event[Source]) -> None:
            # Whether the answer is the last word is not known yet.
            if tell is not None and not isinstance(event, Answer):
                await tell(event)

        whole = deadlines.current()
        deadlines.enter(deadlines.within(seconds))
        try:
            return await self._admission.ask(
                question, stand, None if tell is None else tell_the_way
            )
        finally:
            if whole is not None:
                deadlines.enter(whole)

    async def _queued(
        self, question: Question, deferral: Deferral, reason: Reason
    ) -> Answer[Source]:
        began = time.perf_counter()
        ledger = self._known()
        try:
            caller, written = identity.current(), question_bytes(question)
            job_id = await ledger.accept(caller, written, deferral)
        except StoreLost as error:
            raise _unavailable() from error
        log.info("job_accepted", job_id=job_id, reason=reason)
        return Answer(
            answer_id=str(uuid4()),
            written=Written(Outcome(Mode.QUEUED, reason, job_id=job_id)),
            sources=(),
            timings={},
            elapsed=time.perf_counter() - began,
            instructions_version="",
            score_space="",
            epoch=0,
        )

    async def _entry(self, job_id: str, *, cancel: bool = False) -> Entry:
        ledger = self._known()
        try:
            caller = identity.current()
            entry = await ledger.look(job_id, caller, cancel=cancel) if is_id(job_id) else None
        except StoreLost as error:
            raise _unavailable() from error
        if entry is None:
            raise NotFound("there is no such job", reason="NO_SUCH_JOB")
        return entry

    async def _shown(self, job_id: str, entry: Entry) -> SourceJob:
        return Job(
            job_id,
            entry.state,
            entry.accepted,
            entry.expires,
            entry.attempts,
            entry.reason,
            entry.superseded_by,
            await self._answer(entry),
        )

    async def _answer(self, entry: Entry) -> Answer[Source] | None:
        """What came of it, as far as the current caller may still see it."""
        if entry.answer is None:
            return None
        deadlines.enter(deadlines.within(SHOW_SECONDS))
        return await self._flow.again(question_in(entry.question), answer_in(entry.answer))

    def _known(self) -> Ledger:
        if self._ledger is None:
            raise JobsUnavailable("this gateway takes no jobs")
        return self._ledger


def _unavailable() -> SluiceError:
    return JobsUnavailable("the jobs cannot be reached now")
