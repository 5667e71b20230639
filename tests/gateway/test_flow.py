"""The flow by itself, with stages of three lines and a clock that the test moves."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

import pytest

from chassis.errors import Forbidden, InvalidInput, SluiceError, Unavailable
from gateway.answer import Answer, Citation, Found, Prompt, Written
from gateway.flow import Flow
from gateway.outcome import Acceptance, Mode, Outcome, Reason
from gateway.question import Question

QUESTION = Question("why")
ID = UUID(int=7)
ANSWERED = Written(
    Outcome(Mode.GENERATED, Reason.NONE, Acceptance.ACCEPTED),
    "Because. [b]",
    [Citation("b", 0, 12, 1)],
)


@dataclass(frozen=True)
class Page:
    label: str


@dataclass
class Clock:
    now: float = 0

    def __call__(self) -> float:
        return self.now


@dataclass
class Stages:
    """All three stages: each takes its seconds, then raises its error or replies."""

    clock: Clock = field(default_factory=Clock)
    seconds: dict[str, float] = field(default_factory=dict)
    errors: dict[str, SluiceError] = field(default_factory=dict)

    def _work(self, stage: str) -> None:
        self.clock.now += self.seconds.get(stage, 0)
        if stage in self.errors:
            raise self.errors[stage]

    async def retrieve(self, question: Question) -> Found[str]:
        self._work("retrieve")
        return Found(["a", "b"], "COSINE", 3)

    async def assemble(self, question: Question, found: Found[str]) -> Prompt[Page]:
        self._work("assemble")
        return Prompt([], [Page(name) for name in found.passages], 9, "en-1", found.score_space)

    def as_found(self, passages: Sequence[str]) -> Sequence[Page]:
        return [Page(name.upper()) for name in passages]

    async def generate(self, question: Question, prompt: Prompt[Page]) -> Written:
        self._work("generate")
        return ANSWERED


async def ask(stages: Stages) -> Answer[Page]:
    flow = Flow(stages, stages, stages, new_id=lambda: ID, clock=stages.clock)
    return await flow.ask(QUESTION)


async def test_an_answer_carries_what_each_stage_said_and_took() -> None:
    seconds = {"retrieve": 1.0, "assemble": 2.0, "generate": 4.0}
    answer = await ask(Stages(seconds=seconds))
    assert answer == Answer(str(ID), ANSWERED, [Page("b")], seconds, 7.0, "en-1", "COSINE", 3)


async def test_the_time_of_a_stage_that_failed_counts_too() -> None:
    stages = Stages(seconds={"retrieve": 1.0, "assemble": 2.0})
    stages.errors["assemble"] = Unavailable("down")
    answer = await ask(stages)
    assert answer.timings == {"retrieve": 1.0, "assemble": 2.0}
    assert (answer.elapsed, answer.instructions_version) == (3.0, "")
    assert answer.sources == [Page("A"), Page("B")]


@pytest.mark.parametrize("error", [InvalidInput("no", field="question"), Forbidden("no")])
@pytest.mark.parametrize("stage", ["retrieve", "assemble", "generate"])
async def test_what_the_caller_can_mend_is_raised(stage: str, error: SluiceError) -> None:
    with pytest.raises(type(error)):
        await ask(Stages(errors={stage: error}))


class Hanging(Stages):
    def __init__(self) -> None:
        super().__init__()
        self.asked, self.cancelled = asyncio.Event(), False

    async def generate(self, question: Question, prompt: Prompt[Page]) -> Written:
        self.asked.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        return ANSWERED


async def test_a_cancelled_question_is_no_outcome() -> None:
    stages = Hanging()
    asking = asyncio.create_task(ask(stages))
    await stages.asked.wait()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert stages.cancelled
