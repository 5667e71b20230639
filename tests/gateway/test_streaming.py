"""Answers told while they come about, over both faces of a real gateway before real stages."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any

import grpc
import pytest
from google.protobuf.json_format import MessageToDict

from chassis import errors
from sluice.answer.v1 import answer_pb2, outcome_pb2
from sluice.evidence.v1 import evidence_pb2
from sluice.generate.v1 import generate_pb2
from sluice.retrieve.v1 import retrieve_pb2
from tests.gateway.house import (
    QUESTION,
    SEATS,
    WRITTEN,
    House,
    Told,
    delta,
    final,
    hanging,
    passage,
    raising,
    retraction,
    returning,
    telling,
    token,
    until,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")

STAGES = [
    Told("stage", {"stage": name, "milliseconds": took})
    for name in ("retrieve", "assemble", "generate")
    for took in (None, 0)
]
WORDS = [Told("delta", {"text": word}) for word in ("Rotate ", "it ", "on ", "day ", "1. ", "[S1]")]
NEVER = asyncio.Event()


def untimed(events: list[Told]) -> list[Told]:
    """The events; of the answer only what came of it, of times only whether there are any."""
    return [_untimed(event) for event in events if event.name]


def _untimed(event: Told) -> Told:
    match event.name:
        case "stage" if event.content["milliseconds"]:
            return Told("stage", {**event.content, "milliseconds": 0})
        case "answer":
            return Told("answer", (event.content["mode"], event.content["reason"]))
        case "error":
            return Told("error", event.content["reason"])
    return event


async def hear_grpc(house: House, limit: float = 10) -> list[Told]:
    """The same events over gRPC, in the words of the other face."""
    call = house.answers.AskStream(
        answer_pb2.AskStreamRequest(ask=answer_pb2.AskRequest(question=QUESTION)),
        timeout=limit,
        metadata=(("authorization", f"Bearer {token()}"),),
    )
    heard: list[Told] = []
    try:
        async for event in call:
            heard.append(_heard(event))  # noqa: PERF401 - what came before a failure counts
    except grpc.aio.AioRpcError as failure:
        heard.append(Told("error", failure.code().name))
    return heard


def _heard(event: answer_pb2.AskStreamResponse) -> Told:
    kind = event.WhichOneof("event")
    match kind:
        case "stage":
            took = 0 if event.stage.HasField("elapsed") else None
            return Told("stage", {"stage": event.stage.stage, "milliseconds": took})
        case "delta":
            return Told("delta", {"text": event.delta})
        case "retraction":
            name = outcome_pb2.RetractionReason.Name(event.retraction.reason)
            return Told("retract", {"reason": name.removeprefix("RETRACTION_REASON_")})
    (mode, told), *_ = MessageToDict(event.answer.outcome).items()
    reason = told.get("reason", "NONE").partition("_REASON_")[2] or "NONE"
    return Told("answer", (mode.upper(), reason))


async def heard(house: House, **headers: str) -> list[Told]:
    """What either face tells, which is the same."""
    over_http = untimed(await house.hear(**headers))
    limit = float(headers.get("Request_Timeout", 10))
    over_grpc = await hear_grpc(house, limit)
    if over_http[-1].name == "error":
        assert over_grpc[-1] == Told("error", "INTERNAL")
        over_grpc[-1] = over_http[-1]
    assert over_grpc == over_http
    return over_http


async def test_stages_words_and_the_answer_are_told_in_their_order(house: House) -> None:
    assert await heard(house) == [
        *STAGES[:5],
        *WORDS,
        STAGES[5],
        Told("answer", ("EXTRACTIVE", "NONE")),
    ]


async def test_the_last_event_is_what_the_buffered_call_returns(house: House) -> None:
    async with house.told() as (response, events):
        told = [event async for event in events]
    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert response.headers["cache-control"] == "no-cache, no-store"
    assert response.headers["x-accel-buffering"] == "no"
    assert "content-length" not in response.headers
    assert "ratelimit" in response.headers
    assert told[-1].name == "answer"
    streamed, buffered = told[-1].content, (await house.ask()).json()
    own = ("answer_id", "timings")
    assert {**streamed, **dict.fromkeys(own)} == {**buffered, **dict.fromkeys(own)}
    ended = {
        one.content["stage"]: one.content["milliseconds"] for one in told if one.name == "stage"
    }
    assert ended == {name: streamed["timings"][name] for name in ended}
    requests = [house.generate.seen[number].request for number in (0, 1)]
    assert requests[0] == requests[1]


async def test_how_an_answer_came_about_is_told(house: House) -> None:
    provenance = outcome_pb2.Provenance(
        candidate="second",
        switch_reason=outcome_pb2.SWITCH_REASON_TIMEOUT,
        schema_constrained=True,
        repaired=True,
    )
    provenance.cached_age.FromMilliseconds(2_500)
    reply = generate_pb2.GenerateResponse(provenance=provenance)
    reply.MergeFrom(WRITTEN)
    house.generate.behaviour = returning(reply)
    expected = {
        "candidate": "second",
        "switch_reason": "TIMEOUT",
        "schema_constrained": True,
        "repaired": True,
        "cached_age_seconds": 2.5,
    }
    assert (await house.ask()).json()["provenance"] == expected
    assert (await house.hear())[-1].content["provenance"] == expected
    metadata = (("authorization", f"Bearer {token()}"),)
    request = answer_pb2.AskRequest(question=QUESTION)
    over_grpc = await house.answers.Ask(request, timeout=10, metadata=metadata)
    assert over_grpc.provenance == provenance


async def test_an_abstention_tells_of_the_stages_that_were_asked(house: House) -> None:
    house.retrieve.behaviour = returning(retrieve_pb2.RetrieveResponse(epoch=7))
    assert await heard(house) == [*STAGES[:2], Told("answer", ("ABSTAINED", "NOTHING_FOUND"))]


UNAVAILABLE = outcome_pb2.Unavailable
MODEL_GONE = generate_pb2.GenerateResponse(
    outcome=outcome_pb2.Outcome(
        unavailable=UNAVAILABLE(reason=outcome_pb2.UNAVAILABLE_REASON_MODEL_UNAVAILABLE)
    )
)
FAILED = generate_pb2.GenerateResponse(
    outcome=outcome_pb2.Outcome(
        unavailable=UNAVAILABLE(reason=outcome_pb2.UNAVAILABLE_REASON_INVALID_OUTPUT)
    )
)
# What generate tells, then why the text is withdrawn (None: it is not), then what comes of it.
TOLD: dict[str, tuple[tuple[Any, ...], str | None, tuple[str, str]]] = {
    "the verdict fails": (
        (delta("a"), retraction(outcome_pb2.RETRACTION_REASON_INVALID_OUTPUT), final(FAILED)),
        "INVALID_OUTPUT",
        ("UNAVAILABLE", "INVALID_OUTPUT"),
    ),
    "the verdict fails and nothing was withdrawn": (
        (delta("a"), final(FAILED)),
        "INVALID_OUTPUT",
        ("UNAVAILABLE", "INVALID_OUTPUT"),
    ),
    "the sources' own words take the model's place": (
        (delta("a"), retraction(outcome_pb2.RETRACTION_REASON_REFUSED), final(WRITTEN)),
        "REFUSED",
        ("EXTRACTIVE", "NONE"),
    ),
    "other text than the final one was shown": (
        (delta("Rotate"), final(WRITTEN)),
        "INVALID_OUTPUT",
        ("EXTRACTIVE", "NONE"),
    ),
    "a retraction says no reason": (
        (delta("a"), retraction(outcome_pb2.RETRACTION_REASON_UNSPECIFIED), final(FAILED)),
        "INVALID_OUTPUT",
        ("UNAVAILABLE", "INVALID_OUTPUT"),
    ),
    "it is cut": ((delta("a"),), "INTERRUPTED", ("UNAVAILABLE", "MODEL_UNAVAILABLE")),
    "it is cut before the first word": ((), None, ("UNAVAILABLE", "MODEL_UNAVAILABLE")),
    "the model stops": (
        (delta("a"), final(MODEL_GONE)),
        "INTERRUPTED",
        ("UNAVAILABLE", "MODEL_UNAVAILABLE"),
    ),
    "capacity is used up": (
        (delta("a"), errors.Exhausted("pool of azure-1 full")),
        "INTERRUPTED",
        ("UNAVAILABLE", "CAPACITY"),
    ),
    "it breaks down": (
        (delta("a"), errors.Unavailable("driver text")),
        "INTERRUPTED",
        ("UNAVAILABLE", "MODEL_UNAVAILABLE"),
    ),
    "deltas follow a retraction": (
        (
            delta("a"),
            retraction(outcome_pb2.RETRACTION_REASON_INTERRUPTED),
            delta("b"),
            retraction(outcome_pb2.RETRACTION_REASON_REFUSED),
            final(MODEL_GONE),
        ),
        "INTERRUPTED",
        ("UNAVAILABLE", "MODEL_UNAVAILABLE"),
    ),
    "nothing was shown that could be withdrawn": (
        (retraction(outcome_pb2.RETRACTION_REASON_INTERRUPTED), final(FAILED)),
        None,
        ("UNAVAILABLE", "INVALID_OUTPUT"),
    ),
}


@pytest.mark.parametrize("case", TOLD)
async def test_text_that_does_not_hold_is_withdrawn_before_the_answer(
    house: House, case: str
) -> None:
    script, why, outcome = TOLD[case]
    house.generate.telling = telling(*script)
    told = [event for event in await heard(house) if event.name != "stage"]
    shown = [
        Told("delta", {"text": step.delta}) for step in script[:1] if getattr(step, "delta", "")
    ]
    withdrawn = [Told("retract", {"reason": why})] if why else []
    assert told == [*shown, *withdrawn, Told("answer", outcome)]


GONE = retrieve_pb2.CheckPassagesResponse(gone=[passage(1).point_id], epoch=8)


async def test_an_answer_whose_evidence_went_away_is_withdrawn_on_every_way_out(
    house: House,
) -> None:
    house.retrieve.checking = returning(GONE)
    assert (await heard(house))[-2:] == [
        Told("retract", {"reason": "EVIDENCE_CHANGED"}),
        Told("answer", ("UNAVAILABLE", "RETRIEVAL_UNAVAILABLE")),
    ]
    for answer in ((await house.hear())[-1].content, (await house.ask()).json()):
        assert (answer["text"], answer["citations"]) == ("", [])
        assert [source["label"] for source in answer["sources"]] == ["S2"]
        assert answer["usage"]["input_tokens"] == 42
    assert house.retrieve.checked[0] == retrieve_pb2.CheckPassagesRequest(
        epoch=7, point_ids=[passage(1).point_id, passage(2).point_id]
    )


async def test_evidence_is_looked_at_again_in_the_states_that_were_searched(house: House) -> None:
    await house.ask({"question": QUESTION, "filters": {"publication_states": ["draft"]}})
    assert house.retrieve.checked[0].publication_states == [evidence_pb2.PUBLICATION_STATE_DRAFT]


async def test_what_cannot_be_looked_at_again_is_not_shown(house: House) -> None:
    house.retrieve.checking = raising(errors.Unavailable("index down, driver text"))
    assert (await heard(house))[-2:] == [
        Told("retract", {"reason": "EVIDENCE_CHANGED"}),
        Told("answer", ("UNAVAILABLE", "RETRIEVAL_UNAVAILABLE")),
    ]
    answer = (await house.ask()).json()
    assert (answer["reason"], answer["text"], answer["sources"]) == (
        "RETRIEVAL_UNAVAILABLE",
        "",
        [],
    )


async def test_where_time_runs_out_there_is_some_left_to_look_at_the_passages(
    house: House,
) -> None:
    house.retrieve.checking = returning(GONE)
    house.generate.behaviour = hanging
    answer = (await house.ask(Request_Timeout="0.6")).json()
    assert (answer["mode"], answer["reason"]) == ("UNAVAILABLE", "DEADLINE")
    assert [source["label"] for source in answer["sources"]] == ["S2"]


async def test_a_stage_that_dies_in_the_middle_withdraws_the_text_and_shows_the_passages(
    house: House,
) -> None:
    house.generate.telling = telling(delta("Rotate "), NEVER)
    async with house.told() as (_, events):
        async for event in events:
            if event.name == "delta":
                break
        await house.generate.stop()
        rest = [event async for event in events if event.name]
    assert untimed(rest)[-2:] == [
        Told("retract", {"reason": "INTERRUPTED"}),
        Told("answer", ("UNAVAILABLE", "MODEL_UNAVAILABLE")),
    ]
    assert rest[-1].content["text"] == ""
    assert [source["label"] for source in rest[-1].content["sources"]] == ["S1", "S2"]
    house.generate.reset()
    await house.generate.start()
    assert await until(partial(answers, house))


async def answers(house: House) -> bool:
    """Whether questions are let in and generate is there."""
    mode = (await house.ask()).json().get("mode")
    return bool(mode == "EXTRACTIVE")


async def test_time_that_runs_out_in_the_middle_withdraws_the_text(house: House) -> None:
    house.generate.telling = telling(delta("Rotate "), NEVER)
    assert (await heard(house, Request_Timeout="0.6"))[-3:] == [
        STAGES[5],
        Told("retract", {"reason": "DEADLINE"}),
        Told("answer", ("UNAVAILABLE", "DEADLINE")),
    ]


@pytest.mark.parametrize("said", [errors.Internal("secret"), errors.NotFound("deployment azure-1")])
async def test_a_bug_in_the_middle_withdraws_the_text_and_is_told_without_its_words(
    house: House, said: Exception
) -> None:
    house.generate.telling = telling(delta("Rotate "), said)
    assert (await heard(house))[-2:] == [
        Told("retract", {"reason": "INTERRUPTED"}),
        Told("error", "INTERNAL"),
    ]
    async with house.told(X_Request_Id="the-failed-one") as (response, events):
        last = [event async for event in events][-1].content
    assert last["detail"] == "internal error; the log has the details"
    assert (last["status"], last["request_id"]) == (500, response.headers["x-request-id"])


async def test_what_the_caller_can_mend_is_told_when_a_stage_says_it(house: House) -> None:
    house.retrieve.behaviour = raising(errors.Forbidden("drafts need the role", reason="NO_ROLE"))
    *_, last = await house.hear()
    assert (last.name, last.content["status"], last.content["reason"]) == ("error", 403, "NO_ROLE")


async def test_who_is_not_let_in_hears_an_ordinary_refusal(house: House) -> None:
    wrong = {
        400: house.told({"question": ""}),
        401: house.told(Authorization="Bearer nonsense"),
        415: house.told(Content_Type="text/plain"),
    }
    for status, asking in wrong.items():
        async with asking as (response, _):
            await response.aread()
        assert response.headers["content-type"] == "application/problem+json"
        assert (response.status_code, response.json()["status"]) == (status, status)


async def until_shown(events: AsyncIterator[Told]) -> None:
    async for event in events:
        if event.name == "delta":
            return
    raise AssertionError("nothing was shown")


@asynccontextmanager
async def streams(house: House, number: int) -> AsyncIterator[AsyncExitStack]:
    """So many open streams that have shown some text and wait in generate."""
    house.generate.telling = telling(delta("Rotate "), NEVER)
    async with AsyncExitStack() as open_streams:
        for _ in range(number):
            _, events = await open_streams.enter_async_context(house.told())
            await until_shown(events)
        yield open_streams


async def test_a_stream_holds_its_seat_until_its_client_leaves(house: House) -> None:
    async with streams(house, SEATS) as open_streams:
        refused = await house.ask(Accept="text/event-stream")
        assert (refused.status_code, refused.json()["reason"]) == (503, "NO_ROOM")
        assert not house.generate.cancelled.is_set()
        await open_streams.aclose()
        await asyncio.wait_for(house.generate.cancelled.wait(), 5)
    assert await until(house.idle)


async def test_a_cancelled_grpc_stream_ends_the_stage_call(house: House) -> None:
    house.generate.telling = telling(delta("Rotate "), NEVER)
    call = house.answers.AskStream(
        answer_pb2.AskStreamRequest(ask=answer_pb2.AskRequest(question=QUESTION)),
        timeout=10,
        metadata=(("authorization", f"Bearer {token()}"),),
    )
    async for event in call:
        if event.delta:
            break
    assert not house.generate.cancelled.is_set()
    call.cancel()
    await asyncio.wait_for(house.generate.cancelled.wait(), 5)
    assert call.cancelled()
    assert await until(house.idle)


async def test_a_reader_that_does_not_read_holds_back_the_stage(house: House) -> None:
    page, pages, told = "x" * 10_000, 2_000, 0

    async def much(task: object) -> AsyncIterator[generate_pb2.GenerateStreamResponse]:
        nonlocal told
        for _ in range(pages):
            told += 1
            yield delta(page)
        yield final(FAILED)

    house.generate.telling = much
    async with house.told() as (_, events):
        await until_shown(events)
        before = -1
        while before < told:
            before = told
            for _ in range(10):
                await house.http.get("/healthz")
        assert told < pages * 3 // 4
        rest = [event async for event in events if event.name]
    assert [event.name for event in rest[:-3]] == ["delta"] * (pages - 1)
    assert [event.name for event in rest[-3:]] == ["stage", "retract", "answer"]
