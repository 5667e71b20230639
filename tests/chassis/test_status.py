"""The table from error to status, and the crossing in both directions."""

import grpc
import pytest
from google.rpc.status_pb2 import Status
from grpc.aio import AioRpcError, Metadata
from hypothesis import given
from hypothesis import strategies as st

from chassis import errors, status


def crossed(error: errors.SluiceError) -> errors.SluiceError:
    sent = status.encode(error)
    trailing = Metadata(*sent.trailing_metadata)
    return status.decode(AioRpcError(sent.code, Metadata(), trailing, sent.details), "stage")


def test_every_error_has_a_code_of_its_own() -> None:
    tree = set(errors.SluiceError.__subclasses__())
    assert tree <= set(status.CODES)
    assert len(set(status.CODES.values())) == len(status.CODES)


@pytest.mark.parametrize("cls", [cls for cls in status.CODES if cls is not errors.InvalidInput])
def test_an_error_crosses_with_class_reason_and_time(cls: type[errors.SluiceError]) -> None:
    there = crossed(cls("said", reason="WHY", retry_after=2.5, metadata={"k": "v"}))
    assert type(there) is cls
    assert (there.message, there.reason) == ("stage: said", "WHY")
    assert (there.retry_after, there.metadata) == (2.5, {"k": "v"})


def test_a_caller_error_crosses_with_its_field() -> None:
    there = crossed(errors.InvalidInput("too long", field="question"))
    assert isinstance(there, errors.InvalidInput)
    assert (there.field, there.message) == ("question", "stage: too long")


@given(st.text(max_size=30_000), st.text(max_size=1_000))
def test_no_message_makes_a_status_that_grpc_refuses(message: str, value: str) -> None:
    clean = message.encode(errors="replace").decode()
    error = errors.Unavailable(clean, metadata={"detail": value.encode(errors="replace").decode()})
    sent = status.encode(error)
    size = sum(len(item) for _, item in sent.trailing_metadata if isinstance(item, bytes))
    assert size <= 8_000
    assert sent.code is grpc.StatusCode.UNAVAILABLE


@pytest.mark.parametrize(
    ("code", "cls", "reason"),
    [
        (grpc.StatusCode.UNAVAILABLE, errors.Unavailable, "STAGE_UNAVAILABLE"),
        (grpc.StatusCode.DEADLINE_EXCEEDED, errors.DeadlineExceeded, "DEADLINE_EXCEEDED"),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, errors.Internal, "MESSAGE_TOO_LARGE"),
        (grpc.StatusCode.UNKNOWN, errors.Internal, "STAGE_FAILED"),
    ],
)
def test_a_transport_failure_leaves_its_text_behind(
    code: grpc.StatusCode, cls: type[errors.SluiceError], reason: str
) -> None:
    foreign = Metadata(
        ("grpc-status-details-bin", Status(message="host 10.0.0.1").SerializeToString())
    )
    there = status.decode(AioRpcError(code, Metadata(), foreign, "host 10.0.0.1"), "retrieve")
    assert type(there) is cls
    assert there.reason == reason
    assert "10.0.0.1" not in there.message
