"""The flow by itself, with stages of three lines and a clock that the test moves."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chassis import deadlines
from chassis.deadlines import Deadline
from chassis.errors import (
    DeadlineExceeded,
    Exhausted,
    Forbidden,
    Internal,
    InvalidInput,
    SluiceError,
    Unavailable,
)
from gateway.answer import Answer, Citation, Found, Prompt, Provenance, Usage, Written
from gateway.flow import Flow
from gateway.outcome import TABLE, Acceptance, Mode, Outcome, Reason
from gateway.question import Question
from gateway.telling import Delta, Event, Retraction, RetractionReason, Stage, Tell, Telling

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
    """All three stages: each takes its seconds, then raises its error or replies.

    Asked for a stream, generate tells and retracts before that what the script says.
    """

    clock: Clock = field(default_factory=Clock)
    seconds: dict[str, float] = field(default_factory=dict)
    errors: dict[str, SluiceError] = field(default_factory=dict)
    script: Sequence[str | RetractionReason] = ()
    written: Written = ANSWERED
    lost: frozenset[str] = frozenset()
    looked_at: list[tuple[int, list[str]]] = field(default_factory=list)

    def _work(self, stage: str) -> None:
        self.clock.now += self.seconds.get(stage, 0)
        if stage in self.errors:
            raise self.errors[stage]

    async def retrieve(self, question: Question) -> Found[str]:
        self._work("retrieve")
        return Found(["a", "b"], "COSINE", 3)

    async def gone(self, question: Question, epoch: int, sources: Sequence[Page]) -> frozenset[str]:
        self._work("check")
        self.looked_at.append((epoch, [source.label for source in sources]))
        return self.lost

    async def assemble(self, question: Question, found: Found[str]) -> Prompt[Page]:
        self._work("assemble")
        return Prompt([], [Page(name) for name in found.passages], 9, "en-1", found.score_space)

    def as_found(self, passages: Sequence[str]) -> Sequence[Page]:
        return [Page(name.upper()) for name in passages]

    async def generate(self, question: Question, prompt: Prompt[Page]) -> Written:
        self._work("generate")
        return self.written

    async def stream(
        self, question: Question, prompt: Prompt[Page], telling: Telling[Page]
    ) -> Written:
        for step in self.script:
            if isinstance(step, str):
                await telling.delta(step)
            else:
                await telling.retract(step)
        return await self.generate(question, prompt)


async def ask(stages: Stages, tell: Tell[Page] | None = None) -> Answer[Page]:
    flow = Flow(stages, stages, stages, new_id=lambda: ID, clock=stages.clock)
    return await flow.ask(QUESTION, tell)


async def told(stages: Stages) -> list[Event[Page]]:
    """All that is told; an error that is raised ends it without an answer."""
    heard: list[Event[Page]] = []

    async def tell(event: Event[Page]) -> None:
        heard.append(event)

    with suppress(SluiceError):
        assert await ask(stages, tell) == heard[-1]
    return heard


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


def begun(*ended: str) -> list[Stage]:
    return [Stage(name, took) for name in ended for took in (None, 0)]


async def test_each_stage_is_told_of_with_its_time() -> None:
    heard = await told(Stages(seconds={"retrieve": 1.0, "generate": 4.0}, script=["Because. [b]"]))
    assert heard[:-1] == [
        Stage("retrieve"),
        Stage("retrieve", 1.0),
        Stage("assemble"),
        Stage("assemble", 0.0),
        Stage("generate"),
        Delta("Because. [b]"),
        Stage("generate", 4.0),
    ]


@pytest.mark.parametrize("stage", ["retrieve", "assemble", "generate"])
async def test_a_stage_that_failed_is_told_of_as_ended(stage: str) -> None:
    *stages, answer = await told(Stages(errors={stage: Unavailable("down")}))
    asked = ["retrieve", "assemble", "generate"]
    assert stages == begun(*asked[: asked.index(stage) + 1])
    assert isinstance(answer, Answer)
    assert answer.written.outcome.mode is Mode.UNAVAILABLE


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (Unavailable("down"), RetractionReason.INTERRUPTED),
        (Exhausted("full"), RetractionReason.INTERRUPTED),
        (DeadlineExceeded("late"), RetractionReason.DEADLINE),
        (Internal("bug"), RetractionReason.INTERRUPTED),
        (Forbidden("no"), RetractionReason.INTERRUPTED),
    ],
)
async def test_shown_text_is_withdrawn_when_the_rest_fails(
    error: SluiceError, reason: RetractionReason
) -> None:
    heard = await told(Stages(errors={"generate": error}, script=["Be", "cause."]))
    assert [one for one in heard if not isinstance(one, Stage | Answer)] == [
        Delta("Be"),
        Delta("cause."),
        Retraction(reason),
    ]
    assert isinstance(heard[-1], Answer) != isinstance(error, Internal | Forbidden)


RETRIEVAL_GONE = Outcome(Mode.UNAVAILABLE, Reason.RETRIEVAL_UNAVAILABLE)
SPENT = Written(
    ANSWERED.outcome, ANSWERED.text, ANSWERED.citations, Usage(9, 3, 1, "m"), Provenance("first")
)


async def test_the_evidence_is_looked_at_again_before_it_is_shown() -> None:
    stages = Stages()
    assert (await ask(stages)).sources == [Page("b")]
    assert stages.looked_at == [(3, ["a", "b"])]


async def test_an_answer_whose_cited_evidence_is_gone_is_withdrawn_with_it() -> None:
    stages = Stages(script=["Because. [b]"], written=SPENT, lost=frozenset("b"))
    *_, stage, withdrawn, answer = await told(stages)
    assert (stage, withdrawn) == (
        Stage("generate", 0.0),
        Retraction(RetractionReason.EVIDENCE_CHANGED),
    )
    assert isinstance(answer, Answer)
    assert answer.written == Written(RETRIEVAL_GONE, usage=SPENT.usage, provenance=SPENT.provenance)
    assert answer.sources == [Page("a")]


async def test_an_answer_stands_whose_other_evidence_is_gone() -> None:
    answer = await ask(Stages(lost=frozenset("a")))
    assert (answer.written, answer.sources) == (ANSWERED, [Page("b")])


async def test_passages_in_an_answers_stead_are_looked_at_too() -> None:
    stages = Stages(lost=frozenset("A"), errors={"assemble": Unavailable("down")})
    answer = await ask(stages)
    assert (answer.written.outcome.reason, answer.sources) == (
        Reason.MODEL_UNAVAILABLE,
        [Page("B")],
    )


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (Unavailable("down"), Reason.RETRIEVAL_UNAVAILABLE),
        (Exhausted("full"), Reason.CAPACITY),
        (DeadlineExceeded("late"), Reason.DEADLINE),
    ],
)
async def test_what_cannot_be_looked_at_again_is_not_shown(
    error: SluiceError, reason: Reason
) -> None:
    stages = Stages(errors={"check": error}, script=["Because. [b]"])
    *_, withdrawn, answer = await told(stages)
    assert isinstance(withdrawn, Retraction)
    assert isinstance(answer, Answer)
    assert (answer.written, answer.sources) == (Written(Outcome(Mode.UNAVAILABLE, reason)), ())
    stages.written = Written(Outcome(Mode.UNAVAILABLE, Reason.REFUSED))
    answer = await ask(stages)
    assert (answer.written, answer.sources) == (stages.written, ())


async def test_nothing_is_looked_at_again_where_nothing_is_shown() -> None:
    insufficient = Written(Outcome(Mode.ABSTAINED, Reason.EVIDENCE_INSUFFICIENT))
    abstaining, failing = Stages(written=insufficient), Stages(errors={"retrieve": Unavailable("")})
    await ask(abstaining)
    await ask(failing)
    assert abstaining.looked_at == failing.looked_at == []


async def test_time_is_kept_to_look_at_the_evidence_again() -> None:
    left = {}

    class Timed(Stages):
        def _work(self, stage: str) -> None:
            left[stage] = deadlines.within(1_000).remaining()
            super()._work(stage)

    whole = Deadline.after(10)
    deadlines.enter(whole)
    await ask(Timed())
    assert left["check"] > 9.95 > left["retrieve"] > left["generate"]
    assert deadlines.current() == whole


STEPS = st.lists(st.sampled_from(["", "Be", "cause. [b]", "x", *RetractionReason]), max_size=6)
OUTCOMES = st.sampled_from(
    [
        ANSWERED,
        *(
            Written(Outcome(mode, reason))
            for mode in (Mode.ABSTAINED, Mode.UNAVAILABLE)
            for reason in TABLE[mode][0]
        ),
    ]
)
FAILURES = st.none() | st.sampled_from([Unavailable("a"), DeadlineExceeded("b"), Internal("c")])


@given(STEPS, OUTCOMES, FAILURES)
def test_whatever_a_stage_tells_no_shown_text_outlives_its_verdict(
    steps: list[str | RetractionReason], written: Written, failure: SluiceError | None
) -> None:
    errors = {"generate": failure} if failure else {}
    heard = asyncio.run(told(Stages(script=steps, written=written, errors=errors)))
    shown = [index for index, event in enumerate(heard) if isinstance(event, Delta)]
    withdrawn = [index for index, event in enumerate(heard) if isinstance(event, Retraction)]
    answers = [event for event in heard if isinstance(event, Answer)]
    assert len(withdrawn) <= 1
    assert all(shown and index > max(shown) for index in withdrawn)
    assert answers == heard[-1:] if not isinstance(failure, Internal) else not answers
    text = "".join(event.text for event in heard if isinstance(event, Delta))
    final = answers[0].written.text if answers else ""
    assert withdrawn or text in ("", final)


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
