import pytest

from chassis.errors import InvalidInput
from chassis.identity import AccessLevel, Caller, enter
from services.generate import probe
from services.generate.extraction import Extraction
from services.generate.guard import Guard
from services.generate.server import GenerateServicer
from sluice.generate.v1 import generate_pb2 as pb
from tests.generate.asking import EXTRACTION, QUALIFIED, TASK, Desk, policy, reply, streamed
from tests.measured import values
from tests.scripted_provider import replies


def counted(name: str, **attributes: str) -> float:
    return values(**attributes).get(f"sluice.generate.{name}", 0.0)


async def test_questions_and_attempts_are_counted_apart(desk: Desk) -> None:
    values()
    ok = counted("calls", shape="buffered", end="ok")
    failed = counted("calls", shape="streamed", end="INVALID_OUTPUT")
    bad = replies.refused(503)
    desk.script(bad, bad, replies.answer(reply()), replies.answer("no JSON"))
    first = desk.candidate("counted")
    backup = desk.candidate("counted-too", qualification=QUALIFIED)
    await desk.pipeline(first, backup).answer(TASK)
    await streamed(desk.pipeline(backup, policy=policy(1)))
    assert counted("calls", shape="buffered", end="ok") == ok + 1
    assert counted("calls", shape="streamed", end="INVALID_OUTPUT") == failed + 1
    assert counted("attempts", candidate="counted", end="PROVIDER_UNAVAILABLE") == 2
    assert counted("attempts", candidate="counted-too", end="ok") == 1
    assert counted("attempts", candidate="counted-too", end="INVALID_OUTPUT") == 1
    assert counted("attempt.duration", candidate="counted") > 0
    assert counted("support", candidate="counted-too") > 0.5


async def test_what_capacity_refused_is_no_attempt(desk: Desk) -> None:
    values()
    refused = counted("calls", shape="buffered", end="MODEL_UNAVAILABLE")
    for _ in range(5):
        desk.bucket.unavailable()
    await desk.pipeline(desk.candidate("never-asked")).answer(TASK)
    assert counted("calls", shape="buffered", end="MODEL_UNAVAILABLE") == refused + 1
    assert counted("attempt.duration", candidate="never-asked") == 0


async def test_a_bug_is_a_failed_question_too() -> None:
    values()
    before = counted("calls", shape="buffered", end=probe.FAILED)
    told: list[str] = []
    with pytest.raises(RuntimeError), probe.question(told.append, "buffered"):
        raise RuntimeError("a bug")
    assert told == ["call:begin", "call:fail"]
    assert counted("calls", shape="buffered", end=probe.FAILED) == before + 1


async def test_outcomes_and_refusals_of_the_guard_are_counted_by_mode_reason_and_field() -> None:
    values()
    enter(Caller("tester", "demo", AccessLevel.TEAM))
    nothing = counted("outcomes", mode="ABSTAINED", reason="NOTHING_FOUND")
    refused = counted("guard.refused", field="messages")
    servicer = GenerateServicer(
        Extraction(EXTRACTION._calibration), Guard(2, 2, 100), needs_messages=False
    )
    context = None
    await servicer.Generate(pb.GenerateRequest(question="When?"), context)  # type: ignore[arg-type] # it is not looked at
    large = pb.GenerateRequest(question="When?")
    for _ in range(3):
        large.messages.add(role=1, content="x")
    with pytest.raises(InvalidInput):
        await servicer.Generate(large, context)  # type: ignore[arg-type] # as above
    with pytest.raises(InvalidInput):
        await anext(servicer.GenerateStream(pb.GenerateStreamRequest(task=large), context))  # type: ignore[arg-type] # as above
    assert counted("outcomes", mode="ABSTAINED", reason="NOTHING_FOUND") == nothing + 1
    assert counted("guard.refused", field="messages") == refused + 2


def test_a_place_in_a_list_is_not_part_of_what_is_counted() -> None:
    values()
    before = counted("guard.refused", field="sources")
    probe.refused("sources[17].score")
    assert counted("guard.refused", field="sources") == before + 1
