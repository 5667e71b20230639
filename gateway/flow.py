"""How an answer comes about: retrieve, assemble, generate, and what is said when one is missing.

Errors that leave here are the caller's to mend, or bugs; an outage is an outcome.
"""

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Generic, Protocol, TypeVar
from uuid import UUID, uuid4

import structlog

from chassis import deadlines
from chassis.errors import (
    DeadlineExceeded,
    Exhausted,
    Forbidden,
    InvalidInput,
    SluiceError,
    Unavailable,
)
from gateway import measures
from gateway.answer import Answer, Found, Labelled, P, Prompt, S, Written
from gateway.outcome import Mode, Outcome, Reason
from gateway.question import Question
from gateway.telling import RetractionReason, Tell, Telling

T = TypeVar("T")
S_contra = TypeVar("S_contra", bound=Labelled, contravariant=True)


class Retrieval(Protocol[P, S_contra]):
    async def retrieve(self, question: Question) -> Found[P]: ...

    async def gone(
        self, question: Question, epoch: int, sources: Sequence[S_contra]
    ) -> frozenset[str]:
        """Labels of the sources that are no longer live, or no longer the caller's to read."""


class Assembly(Protocol[P, S]):
    async def assemble(self, question: Question, found: Found[P]) -> Prompt[S]: ...

    def as_found(self, passages: Sequence[P]) -> Sequence[S]:
        """The passages, each its own source, for when no prompt can be built."""


class Generation(Protocol[S]):
    async def generate(self, question: Question, prompt: Prompt[S]) -> Written: ...

    async def stream(self, question: Question, prompt: Prompt[S], telling: Telling[S]) -> Written:
        """The same. Text that may be shown on the way is told, and withdrawn if need be."""


# Kept back from the stages, so that evidence can be looked at again even where time runs out.
CHECK_SECONDS = 0.1
# What a stage raises when it is not to be had. The flow says so in an outcome.
OUTAGES = (Unavailable, Exhausted, DeadlineExceeded)
NOTHING_FOUND = Written(Outcome(Mode.ABSTAINED, Reason.NOTHING_FOUND))

log = structlog.get_logger()


class Flow(Generic[P, S]):
    """Conducts the stages for one question at a time, within the request's deadline."""

    def __init__(
        self,
        retrieval: Retrieval[P, S],
        assembly: Assembly[P, S],
        generation: Generation[S],
        *,
        new_id: Callable[[], UUID] = uuid4,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._retrieval = retrieval
        self._assembly = assembly
        self._generation = generation
        self._new_id = new_id
        self._clock = clock

    async def ask(self, question: Question, tell: Tell[S] | None = None) -> Answer[S]:
        """The answer, which `tell` hears last of all that happens on the way.

        Raises what the caller can mend, and Internal for a stage's bug; text that was shown is
        withdrawn before.
        """
        telling = Telling(tell)
        record = Record(str(self._new_id()), telling, self._clock)
        with structlog.contextvars.bound_contextvars(answer_id=record.answer_id):
            try:
                with deadlines.keeping(CHECK_SECONDS):
                    written = await self._conduct(question, record, telling)
                answer = record.close(await self._confirmed(question, record, written))
            except SluiceError:
                await telling.retract(RetractionReason.INTERRUPTED)
                raise
            _report(answer)
            await telling.answer(answer)
        return answer

    async def again(self, question: Question, answer: Answer[S]) -> Answer[S]:
        """An answer of another time, as far as the current caller may see it now."""
        record = Record(answer.answer_id, Telling[S](None), self._clock)
        # No epoch: whoever asks now may have other rights than when it was the current one.
        record.sources, record.epoch = answer.sources, 0
        try:
            written = await self._confirmed(question, record, answer.written)
        except (Forbidden, InvalidInput):
            record.sources = ()
            outcome = Outcome(Mode.UNAVAILABLE, Reason.RETRIEVAL_UNAVAILABLE)
            written = _withdrawn(answer.written, outcome)
        return replace(answer, written=written, sources=record.shown(written))

    async def _conduct(
        self, question: Question, record: "Record[S]", telling: Telling[S]
    ) -> Written:
        try:
            found = await record.timed("retrieve", lambda: self._retrieval.retrieve(question))
        except OUTAGES as error:
            return _outage("retrieve", error, Reason.RETRIEVAL_UNAVAILABLE)
        record.score_space, record.epoch = found.score_space, found.epoch
        if not found.passages:
            return NOTHING_FOUND

        try:
            prompt = await record.timed(
                "assemble", lambda: self._assembly.assemble(question, found)
            )
        except OUTAGES as error:
            record.sources = self._assembly.as_found(found.passages)
            return _outage("assemble", error, Reason.MODEL_UNAVAILABLE)
        record.sources, record.instructions_version = prompt.sources, prompt.instructions_version
        if not prompt.sources:
            return NOTHING_FOUND

        try:
            return await record.timed("generate", lambda: self._write(question, prompt, telling))
        except OUTAGES as error:
            return _outage("generate", error, Reason.MODEL_UNAVAILABLE)

    async def _confirmed(
        self, question: Question, record: "Record[S]", written: Written
    ) -> Written:
        """What may still be shown now: documents and rights may have changed meanwhile.

        Without an answer to that nothing is shown.
        """
        if not record.sources or written.outcome.mode is Mode.ABSTAINED:
            return written
        try:
            gone = await self._retrieval.gone(question, record.epoch, record.sources)
        except OUTAGES as error:
            record.sources = ()
            outage = _outage("retrieve", error, Reason.RETRIEVAL_UNAVAILABLE)
            return _withdrawn(written, outage.outcome)
        record.sources = [source for source in record.sources if source.label not in gone]
        if gone.isdisjoint(citation.label for citation in written.citations):
            return written
        log.info("evidence_gone", labels=len(gone))
        return _withdrawn(written, Outcome(Mode.UNAVAILABLE, Reason.RETRIEVAL_UNAVAILABLE))

    async def _write(self, question: Question, prompt: Prompt[S], telling: Telling[S]) -> Written:
        if telling.heard:
            return await self._generation.stream(question, prompt, telling)
        return await self._generation.generate(question, prompt)


def _outage(stage: str, error: SluiceError, otherwise: Reason) -> Written:
    log.warning("stage_unavailable", stage=stage, reason=error.reason)
    if isinstance(error, DeadlineExceeded):
        return Written(Outcome(Mode.UNAVAILABLE, Reason.DEADLINE))
    if isinstance(error, Exhausted):
        return Written(Outcome(Mode.UNAVAILABLE, Reason.CAPACITY))
    return Written(Outcome(Mode.UNAVAILABLE, otherwise))


def _withdrawn(written: Written, outcome: Outcome) -> Written:
    """Nothing of what was written but what it cost. Where nothing was, its own outcome stays."""
    if not written.outcome.has_content:
        return written
    return Written(outcome, usage=written.usage, provenance=written.provenance)


def _report(answer: Answer[S]) -> None:
    outcome = answer.written.outcome
    seconds = {**answer.timings, "total": answer.elapsed}
    log.info("answered", mode=outcome.mode, reason=outcome.reason, seconds=seconds)
    measures.answered(outcome.mode, outcome.reason, answer.elapsed)


class Record(Generic[S]):
    """What is known of an answer while it comes about."""

    def __init__(self, answer_id: str, telling: Telling[S], clock: Callable[[], float]) -> None:
        self.answer_id = answer_id
        self._telling = telling
        self.sources: Sequence[S] = ()
        self.instructions_version = ""
        self.score_space = ""
        self.epoch = 0
        self._clock = clock
        self._began = clock()
        self._timings: dict[str, float] = {}

    async def timed(self, stage: str, work: Callable[[], Awaitable[T]]) -> T:
        """Do the work and tell of it; its time counts whether it ends well or not."""
        await self._telling.stage(stage)
        try:
            result = await self._measured(stage, work())
        except SluiceError:
            await self._telling.stage(stage, self._timings[stage])
            raise
        await self._telling.stage(stage, self._timings[stage])
        return result

    async def _measured(self, stage: str, work: Awaitable[T]) -> T:
        began = self._clock()
        try:
            return await work
        finally:
            self._timings[stage] = self._clock() - began

    def close(self, written: Written) -> Answer[S]:
        return Answer(
            answer_id=self.answer_id,
            written=written,
            sources=self.shown(written),
            timings=self._timings,
            elapsed=self._clock() - self._began,
            instructions_version=self.instructions_version,
            score_space=self.score_space,
            epoch=self.epoch,
        )

    def shown(self, written: Written) -> Sequence[S]:
        """The cited sources of an answer; where none could be made, all of them in its stead."""
        if written.outcome.has_content:
            cited = {citation.label for citation in written.citations}
            return [source for source in self.sources if source.label in cited]
        return () if written.outcome.mode is Mode.ABSTAINED else self.sources
