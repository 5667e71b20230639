"""Bad input over gRPC, down to random bytes."""

from collections.abc import Iterator
from random import Random

import grpc
import pytest
from google.rpc.error_details_pb2 import BadRequest
from google.rpc.status_pb2 import Status

from sluice.answer.v1.answer_pb2 import AskRequest, AskStreamRequest, AskStreamResponse
from sluice.evidence.v1.evidence_pb2 import PublicationState
from sluice.retrieve.v1.retrieve_pb2 import Filters
from tests.gateway.house import House, token

pytestmark = pytest.mark.asyncio(loop_scope="module")


RawCall = grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]


def raw_ask(house: House) -> "RawCall":
    call: RawCall = house.channel.unary_unary("/sluice.answer.v1.AnswerService/Ask")
    return call


async def failure_of(house: House, raw: bytes) -> grpc.aio.AioRpcError:
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await raw_ask(house)(raw, metadata=(("authorization", f"Bearer {token()}"),), timeout=10)
    return failure.value


def field_of(failure: grpc.aio.AioRpcError) -> str:
    trailing = dict(failure.trailing_metadata() or ())
    bad = BadRequest()
    details = Status.FromString(bytes(trailing["grpc-status-details-bin"])).details
    assert any(detail.Unpack(bad) for detail in details)
    return str(bad.field_violations[0].field)


NO_STATE, UNKNOWN_STATE = PublicationState.ValueType(0), PublicationState.ValueType(99)
WRONG = [
    (AskRequest(), "question"),
    (AskRequest(question=" \n "), "question"),
    (AskRequest(question="x" * 4_001), "question"),
    (AskRequest(question="a\0b"), "question"),
    (AskRequest(question="why", locale="../etc"), "locale"),
    (AskRequest(question="why", filters=Filters(areas=["a", ""])), "filters.areas[1]"),
    (
        AskRequest(question="why", filters=Filters(publication_states=[NO_STATE])),
        "filters.publication_states[0]",
    ),
    (
        AskRequest(question="why", filters=Filters(publication_states=[UNKNOWN_STATE])),
        "filters.publication_states[0]",
    ),
]


@pytest.mark.parametrize(("request_sent", "field"), WRONG)
async def test_a_wrong_field_is_named(house: House, request_sent: AskRequest, field: str) -> None:
    failure = await failure_of(house, request_sent.SerializeToString())
    assert failure.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert field_of(failure) == field
    assert house.retrieve.seen == []


@pytest.mark.parametrize(("request_sent", "field"), WRONG)
async def test_a_wrong_field_is_named_to_who_wants_a_stream(
    house: House, request_sent: AskRequest, field: str
) -> None:
    metadata = (("authorization", f"Bearer {token()}"),)
    request = AskStreamRequest(ask=request_sent)
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await anext(aiter(house.answers.AskStream(request, metadata=metadata, timeout=10)))
    assert failure.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert field_of(failure.value) == field
    assert house.retrieve.seen == []


async def test_a_question_that_is_not_utf8_is_named(house: House) -> None:
    failure = await failure_of(house, b"\x0a\x04caf\xe9")
    assert failure.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert field_of(failure) == "question"


def mutated(valid: bytes, number: int) -> Iterator[bytes]:
    random = Random(7)
    for _ in range(number):
        raw = bytearray(valid)
        for _ in range(random.randint(1, 4)):
            raw[random.randrange(len(raw))] = random.randrange(256)
        yield bytes(raw)


VALID = AskRequest(question="why", filters=Filters(areas=["a"]), locale="en")


async def test_random_bytes_are_answered_or_refused_but_break_nothing(house: House) -> None:
    ask = raw_ask(house)
    metadata = (("authorization", f"Bearer {token()}"),)
    codes = set()
    for raw in mutated(VALID.SerializeToString(), 300):
        try:
            await ask(raw, metadata=metadata, timeout=10)
        except grpc.aio.AioRpcError as failure:
            codes.add(failure.code())
    assert codes == {grpc.StatusCode.INVALID_ARGUMENT}


async def test_random_bytes_to_the_stream_end_in_an_answer_or_a_refusal(house: House) -> None:
    ask: grpc.aio.UnaryStreamMultiCallable[bytes, bytes] = house.channel.unary_stream(
        "/sluice.answer.v1.AnswerService/AskStream"
    )
    metadata = (("authorization", f"Bearer {token()}"),)
    ends: set[str | None] = set()
    for raw in mutated(AskStreamRequest(ask=VALID).SerializeToString(), 300):
        try:
            told = [part async for part in ask(raw, metadata=metadata, timeout=10)]
            ends.add(AskStreamResponse.FromString(told[-1]).WhichOneof("event"))
        except grpc.aio.AioRpcError as failure:
            ends.add(failure.code().name)
    assert ends == {"answer", "INVALID_ARGUMENT"}
