"""Puts the questions of a gold set to a suite, a bounded number at once."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

from chassis.errors import Exhausted, SluiceError
from chassis.identity import AccessLevel
from cli.concurrency import each
from cli.evidence_service import EvidenceService, Search
from cli.gateway_service import ask
from cli.identity import Identity
from evals import answers, observed, retrieval
from evals.answers import Answered
from evals.case import Case
from evals.corpus import Corpus
from evals.observed import Answer
from evals.result import CaseResult
from evals.retrieval import Retrieved

T = TypeVar("T")
Step = Callable[[], None]

# A gateway that is full, or an allowance that is used up, is no answer to a question.
PATIENCE = 5
LONGEST_PAUSE = 30.0


@dataclass(frozen=True, slots=True)
class Stages:
    """Which parts are asked: the retrieve stage alone, the suite from end to end, or both."""

    retrieve: bool = True
    answer: bool = True


class Asking(Protocol):
    """Whoever answers: the suite through its gateway, or one candidate."""

    async def ask(self, case: Case) -> Answer: ...


@dataclass(frozen=True, slots=True)
class Gateway:
    """The suite at a URL, asked with development identities of one tenant."""

    url: str
    tenant: str

    async def ask(self, case: Case) -> Answer:
        level = AccessLevel.parse(case.asker.level)
        person = Identity("evaluation", self.tenant, level, case.asker.groups)
        began = time.perf_counter()
        reply = await ask(self.url, person.for_gateway(), case.question, case.locale)
        return observed.answer(reply.raw, time.perf_counter() - began)


@dataclass(frozen=True, slots=True)
class Questioning:
    """How questions are put. Whoever answers is asked each of them `repeat` times."""

    evidence: EvidenceService
    asking: Asking
    documents: Corpus
    search: Search
    stages: Stages
    repeat: int
    at_once: int

    def total(self, cases: Sequence[Case]) -> int:
        """How many calls `run` makes."""
        return len(cases) * (self.stages.retrieve + self.repeat * self.stages.answer)

    async def run(self, cases: Sequence[Case], step: Step) -> list[CaseResult]:
        """The result of every case. `step` is called once a call.

        Raises what the stages and the scoring raise; a note says how far it came.
        """
        retrieved: dict[str, Retrieved] = {}
        answered: dict[tuple[str, int], Answered] = {}

        async def find(case: Case) -> None:
            retrieved[case.id] = await self._find(case)

        async def question(case: Case, number: int) -> None:
            answered[case.id, number] = await self._ask(case)

        repeats = range(self.repeat if self.stages.answer else 0)
        work: list[Callable[[], Awaitable[None]]] = []
        work += [partial(find, case) for case in cases if self.stages.retrieve]
        work += [partial(question, case, number) for number in repeats for case in cases]
        await _counted(work, step, at_once=self.at_once)
        return [
            _result(case, retrieved.get(case.id), [answered[case.id, at] for at in repeats])
            for case in cases
        ]

    async def _find(self, case: Case) -> Retrieved:
        call = partial(self.evidence.find, case, self.search, retrieval.depth(case))
        return retrieval.score(case, await patiently(call), self.documents)

    async def _ask(self, case: Case) -> Answered:
        answer = await patiently(partial(self.asking.ask, case))
        return answers.score(case, answer, self.documents)


async def _counted(
    work: Sequence[Callable[[], Awaitable[None]]], step: Step, *, at_once: int
) -> None:
    done = 0

    async def one(call: Callable[[], Awaitable[None]]) -> None:
        nonlocal done
        await call()
        done += 1
        step()

    try:
        await each(work, one, at_once=at_once)
    except (SluiceError, asyncio.CancelledError) as error:
        error.add_note(f"{done} of {len(work)} calls were made; no results are written")
        raise


async def patiently(call: Callable[[], Awaitable[T]]) -> T:
    """The call's result; where there is no room for it, tried again when there may be."""
    for _ in range(PATIENCE):
        try:
            return await call()
        except Exhausted as error:
            await asyncio.sleep(min(error.retry_after or 1.0, LONGEST_PAUSE))
    return await call()


def _result(case: Case, retrieved: Retrieved | None, answered: Sequence[Answered]) -> CaseResult:
    return CaseResult(
        id=case.id,
        category=case.category,
        severity=case.severity,
        question=case.question,
        expected=case.expected,
        retrieved=retrieved,
        answers=answered,
    )
