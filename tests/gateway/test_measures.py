"""What the gateway tells whoever collects metrics."""

import asyncio
from collections.abc import Sequence

import pytest

from chassis import identity
from chassis.errors import Exhausted, SluiceError
from chassis.identity import AccessLevel, Caller
from gateway.admission import Admission, Room, Waiting
from gateway.answer import Found, Prompt, Written
from gateway.flow import Flow
from gateway.outcome import Reason
from gateway.question import Question
from gateway.telling import RetractionReason, Telling
from sluice.evidence.v1.evidence_pb2 import Passage, Source
from tests.gateway.open_door import Boundless, Everywhere
from tests.measured import values

ANSWERED, RETRACTED = "sluice.gateway.answered", "sluice.gateway.retracted"
REFUSED, IN_FLIGHT = "sluice.gateway.refused", "sluice.gateway.in_flight"
WAITING = "sluice.gateway.waiting"


class Spent:
    """Stages without capacity. `seen` is what was in flight when they were asked."""

    seen = 0.0

    async def retrieve(self, question: Question) -> Found[Passage]:
        self.seen = in_flight()
        raise Exhausted("used up")

    async def gone(
        self, question: Question, epoch: int, sources: Sequence[Source]
    ) -> frozenset[str]:
        raise RuntimeError("nothing was found")

    async def assemble(self, question: Question, found: Found[Passage]) -> Prompt[Source]:
        raise RuntimeError("nothing was found")

    def as_found(self, passages: Sequence[Passage]) -> Sequence[Source]:
        raise RuntimeError("nothing was found")

    async def generate(self, question: Question, prompt: Prompt[Source]) -> Written:
        raise RuntimeError("nothing was found")

    async def stream(
        self, question: Question, prompt: Prompt[Source], telling: Telling[Source]
    ) -> Written:
        raise RuntimeError("nothing was found")


def in_flight() -> float:
    return values().get(IN_FLIGHT, 0)


def refused(reason: str) -> float:
    return values(reason=reason).get(REFUSED, 0)


@pytest.fixture(autouse=True)
def _caller() -> None:
    identity.enter(Caller("ana", "acme", AccessLevel.TEAM))


async def test_refusals_are_counted_by_reason_and_seats_while_they_are_taken() -> None:
    before, no_room, capacity = in_flight(), refused("NO_ROOM"), refused("CAPACITY")
    stages, room = Spent(), Room(1, Everywhere())
    admission = Admission(Boundless(), room, Flow(stages, stages, stages))
    async with room.seat():
        assert in_flight() == before + 1
        with pytest.raises(SluiceError):
            await admission.ask(Question("why"))
    assert (refused("NO_ROOM"), refused("CAPACITY")) == (no_room + 1, capacity)
    answer = await admission.ask(Question("why"))
    assert answer.written.outcome.reason is Reason.CAPACITY
    assert refused("CAPACITY") == capacity + 1
    assert (stages.seen, in_flight()) == (before + 1, before)


async def test_what_came_of_questions_is_counted_by_mode_and_reason() -> None:
    stages = Spent()
    before = values(mode="UNAVAILABLE", reason="CAPACITY").get(ANSWERED, 0)
    await Flow(stages, stages, stages, clock=iter(range(100)).__next__).ask(Question("why"))
    assert values(mode="UNAVAILABLE", reason="CAPACITY")[ANSWERED] == before + 1
    assert values(mode="UNAVAILABLE")["sluice.gateway.answer.duration"] >= 1


async def test_who_waits_for_a_seat_is_counted_until_there_is_one() -> None:
    before = values().get(WAITING, 0)
    room = Room(1, Everywhere(), Waiting(seconds=5, length=1))
    sat = asyncio.Event()

    async def sit() -> None:
        async with room.seat():
            sat.set()

    async with room.seat():
        waiting = asyncio.create_task(sit())
        await asyncio.sleep(0)
        assert room.waiting == 1
        assert values()[WAITING] == before + 1
    await waiting
    assert sat.is_set()
    assert values()[WAITING] == before


async def test_withdrawn_text_is_counted_once_an_answer() -> None:
    async def tell(event: object) -> None: ...

    before = values(reason="REFUSED").get(RETRACTED, 0)
    telling: Telling[Source] = Telling(tell)
    await telling.retract(RetractionReason.REFUSED)
    assert values(reason="REFUSED").get(RETRACTED, 0) == before
    await telling.delta("Because")
    for reason in (RetractionReason.REFUSED, RetractionReason.DEADLINE):
        await telling.retract(reason)
    assert values(reason="REFUSED")[RETRACTED] == before + 1
