"""The way of a question to a model and back.

what is given instead, where no model could answer
  the question's probe, and its time
    the cache, or a stream's begin and end
      validation, and one repair
        retries, and other candidates
          the attempt: capacity reserved, its own probe, the provider

`Pipeline.of` composes them in this order, from the inside.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Literal, Self

from chassis import deadlines
from chassis.deadlines import Deadline
from chassis.errors import DeadlineExceeded, SluiceError
from services.generate import probe
from services.generate.attempt import Attempts
from services.generate.audience import Audience
from services.generate.budget import Budget, Ledger
from services.generate.cache import AnswerCache
from services.generate.cached import Cached, Earlier, Keys
from services.generate.call import Call, Route, Step
from services.generate.candidate import Candidate, Candidates
from services.generate.evidence import Source
from services.generate.extraction import Extraction
from services.generate.failure import NoCandidate, reason_of
from services.generate.flights import Flights
from services.generate.instead import Instead
from services.generate.probe import Tell
from services.generate.qualification import validation_version
from services.generate.release import Release
from services.generate.result import Result
from services.generate.retry import Pauses, Retries
from services.generate.streamed import Streamed
from services.generate.task import Task
from services.generate.validation import OnInvalid, Validation
from services.generate.verdict import Abstained, AbstainedReason, Unavailable

# Kept of a question's time for a quotation, which takes a third of a second at most.
KEPT_SHARE = 0.1
MOST_KEPT = 0.5


@dataclass(frozen=True, slots=True)
class Memory:
    """How long answers are kept: `fresh`, and `stale` where no model answers, in seconds."""

    cache: AnswerCache
    secret: bytes
    fresh: float
    stale: float
    replays_streams: bool = False


@dataclass(frozen=True, slots=True)
class Policy:
    """How answers are made. `limit` bounds the time of one question, in seconds."""

    budget: Budget
    limit: float
    floor: float
    release: Literal["sentence", "token"] = "sentence"
    on_invalid: OnInvalid = "repair"
    pauses: Pauses = field(default_factory=Pauses)


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Answers by a model, or by what policy has in its stead."""

    candidates: Candidates
    policy: Policy
    buffered: Step
    streamed: Step
    instead: Instead
    tell: Tell

    @classmethod
    def of(
        cls,
        candidates: Sequence[Candidate],
        policy: Policy,
        *,
        memory: Memory | None = None,
        extraction: Extraction | None = None,
        tell: Tell = probe.span_event,
    ) -> Self:
        def release(sources: Sequence[Source]) -> Release:
            return Release(sources, floor=policy.floor, by=policy.release)

        # Each attempt reserves capacity, then begins its probe, then calls the provider.
        attempts = Attempts(release)
        retries = Retries(attempts, policy.pauses)
        validation = Validation(retries, policy.floor, policy.on_invalid)
        buffered: Step = validation
        streamed: Step = Streamed(validation)
        earlier = None
        if memory is not None:
            keys = Keys(memory.secret, validation_version(policy.floor))
            flights = Flights(policy.limit)
            buffered = Cached(validation, memory.cache, keys, flights, memory.fresh)
            if memory.replays_streams:
                streamed = Cached(streamed, memory.cache, keys, flights, memory.fresh)
            earlier = Earlier(memory.cache, keys, memory.stale)
        return cls(
            Candidates(candidates), policy, buffered, streamed, Instead(earlier, extraction), tell
        )

    async def answer(self, task: Task, audience: Audience | None = None) -> Result:
        if not task.sources:
            return Result(Abstained(AbstainedReason.NOTHING_FOUND))
        deadline = deadlines.within(self.policy.limit)
        call = self._call(task, audience, deadline)
        try:
            result = await self._asked(call)
        except SluiceError as failure:
            result = await self._given(call, failure, deadline)
        return replace(result, spent=call.ledger.spent(result.spent.model))

    async def _asked(self, call: Call) -> Result:
        shape, path = ("buffered", self.buffered)
        if call.audience is not None:
            shape, path = ("streamed", self.streamed)
        with probe.question(call.tell, shape):
            if not call.route.candidates:
                raise NoCandidate("no configured model may answer this question")
            async with _in_time(call.ledger.deadline):
                return await path.answer(call)

    async def _given(self, call: Call, failure: SluiceError, deadline: Deadline) -> Result:
        try:
            async with _in_time(deadline):
                return await self.instead.answer(call, failure)
        except DeadlineExceeded:
            return Result(Unavailable(reason_of(failure)))

    def _call(self, task: Task, audience: Audience | None, deadline: Deadline) -> Call:
        if self.instead.extraction is not None:
            left = deadline.remaining()
            deadline = deadline.earlier(left - min(MOST_KEPT, KEPT_SHARE * left))
        route = Route(self.candidates.able(task))
        return Call(task, audience, Ledger(self.policy.budget, deadline), route, self.tell)


@asynccontextmanager
async def _in_time(deadline: Deadline) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(max(0.0, deadline.remaining())) as limit:
            yield
    except TimeoutError as error:
        if not limit.expired():
            raise
        raise DeadlineExceeded("the time for this request is over") from error
