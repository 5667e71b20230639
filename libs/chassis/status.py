"""The one table from error class to gRPC status code, and both directions of the crossing."""

from typing import TypeVar

import grpc
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import DecodeError, Message
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status
from grpc_status import rpc_status

from chassis import errors

DOMAIN = "sluice"
M = TypeVar("M", bound=Message)

# A status message of about 18 kB turns into RESOURCE_EXHAUSTED on the way; metadata above 8 kB
# is refused at random. Both caps stay far below.
MESSAGE_LIMIT = 1_000
METADATA_LIMIT = 256

CODES: dict[type[errors.SluiceError], grpc.StatusCode] = {
    errors.InvalidInput: grpc.StatusCode.INVALID_ARGUMENT,
    errors.Unauthenticated: grpc.StatusCode.UNAUTHENTICATED,
    errors.Forbidden: grpc.StatusCode.PERMISSION_DENIED,
    errors.NotFound: grpc.StatusCode.NOT_FOUND,
    errors.Conflict: grpc.StatusCode.ABORTED,
    errors.ContractMismatch: grpc.StatusCode.FAILED_PRECONDITION,
    errors.Exhausted: grpc.StatusCode.RESOURCE_EXHAUSTED,
    errors.Unavailable: grpc.StatusCode.UNAVAILABLE,
    errors.DeadlineExceeded: grpc.StatusCode.DEADLINE_EXCEEDED,
    errors.DataViolation: grpc.StatusCode.DATA_LOSS,
    errors.Internal: grpc.StatusCode.INTERNAL,
}
_CLASSES = {code: cls for cls, code in CODES.items()}


def code_of(error: errors.SluiceError) -> grpc.StatusCode:
    """Status code of the nearest class in the table."""
    for cls in type(error).__mro__:
        if cls in CODES:
            return CODES[cls]
    return grpc.StatusCode.INTERNAL


def encode(error: errors.SluiceError) -> grpc.Status:
    """Rich status with ErrorInfo, and BadRequest or RetryInfo where they say something."""
    info = ErrorInfo(reason=error.reason, domain=DOMAIN)
    for key, value in error.metadata.items():
        info.metadata[key] = value[:METADATA_LIMIT]
    details: list[Message] = [info]
    if isinstance(error, errors.InvalidInput):
        violation = BadRequest.FieldViolation(
            field=error.field[:METADATA_LIMIT], description=error.message[:MESSAGE_LIMIT]
        )
        details.append(BadRequest(field_violations=[violation]))
    if error.retry_after is not None:
        delay = Duration()
        delay.FromNanoseconds(round(error.retry_after * 1e9))
        details.append(RetryInfo(retry_delay=delay))
    status = Status(code=code_of(error).value[0], message=error.message[:MESSAGE_LIMIT])
    for detail in details:
        packed = AnyMessage()
        packed.Pack(detail)
        status.details.append(packed)
    rich: grpc.Status = rpc_status.to_status(status)
    return rich


def decode(failure: grpc.aio.AioRpcError, stage: str) -> errors.SluiceError:
    """The error that a stage raised, prefixed with the stage; driver texts are left behind.

    A failure without our ErrorInfo comes from the transport: its class follows from the code and
    its message is ours.
    """
    status = _rich_status(failure)
    info = _detail(status, ErrorInfo())
    if status is None or info is None or info.domain != DOMAIN:
        return _transport_error(failure, stage)
    cls = _CLASSES.get(failure.code(), errors.Internal)
    message = f"{stage}: {status.message}"
    metadata = dict(info.metadata)
    if cls is errors.InvalidInput:
        bad = _detail(status, BadRequest())
        field = bad.field_violations[0].field if bad and bad.field_violations else ""
        return errors.InvalidInput(message, field=field, reason=info.reason, metadata=metadata)
    retry = _detail(status, RetryInfo())
    after = retry.retry_delay.ToNanoseconds() / 1e9 if retry else None
    return cls(message, reason=info.reason, retry_after=after, metadata=metadata)


def _rich_status(failure: grpc.aio.AioRpcError) -> Status | None:
    for key, value in failure.trailing_metadata() or ():
        if key == "grpc-status-details-bin" and isinstance(value, bytes):
            try:
                return Status.FromString(value)
            except DecodeError:
                return None
    return None


def _detail(status: Status | None, kind: M) -> M | None:
    for detail in status.details if status else ():
        if detail.Unpack(kind):
            return kind
    return None


# What gRPC's handshake says, and what that means for who operates.
_DISTRUST = {
    "certificate has expired": "its certificate has expired",
    "certificate is not yet valid": "its certificate is not valid yet",
    "Hostname Verification Check failed": "its certificate is for another name",
    "CERTIFICATE_VERIFY_FAILED": "its certificate is of another authority",
    "certificate signature failure": "its certificate is of another authority",
    "WRONG_VERSION_NUMBER": "it takes no certificates",
    # The other side judges ours after our side of the handshake has ended, and says no more.
    "Socket closed": "it closes new connections, as where it does not accept this certificate",
}


def distrust(failure: grpc.aio.AioRpcError) -> str:
    """Why no connection was trusted, in words of ours; empty where that was not the trouble."""
    said = failure.details() or ""
    if "last error: " not in said:  # no connection came about, then
        return ""
    return next((meaning for words, meaning in _DISTRUST.items() if words in said), "")


def _transport_error(failure: grpc.aio.AioRpcError, stage: str) -> errors.SluiceError:
    if failure.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
        return errors.DeadlineExceeded(f"{stage} did not answer in time")
    if failure.code() is grpc.StatusCode.UNAVAILABLE:
        error = errors.Unavailable(f"{stage} cannot be reached", reason="STAGE_UNAVAILABLE")
        if problem := distrust(failure):
            error.add_note(problem)  # for who operates: notes go to no caller
        return error
    if failure.code() is grpc.StatusCode.RESOURCE_EXHAUSTED:
        # Without our ErrorInfo this is gRPC's own message limit, never overload.
        return errors.Internal(f"{stage}: message too large", reason="MESSAGE_TOO_LARGE")
    return errors.Internal(f"{stage} failed", reason="STAGE_FAILED")
