"""What goes wrong at Qdrant, as our errors."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import grpc
import structlog

from chassis.errors import (
    ContractMismatch,
    DeadlineExceeded,
    Exhausted,
    Internal,
    SluiceError,
    Unavailable,
)

log = structlog.get_logger()

INDEX_MISSING = "INDEX_MISSING"

_Code = grpc.StatusCode

T = TypeVar("T")


async def answered(call: Callable[..., Awaitable[T]], request: Any, seconds: float) -> T:  # noqa: ANN401 - a message
    """The reply to one call of a stub. Ends and raises as calls inside `translated` do.

    gRPC ends a call that names its time by itself: a timer of ours besides would cost more than
    all that is done with a small reply.
    """
    try:
        return await call(request, timeout=seconds)
    except grpc.aio.AioRpcError as failure:
        raise _told(failure) from failure


@asynccontextmanager
async def translated(seconds: float) -> AsyncIterator[None]:
    """Calls to Qdrant inside the block end within `seconds` and raise only SluiceErrors.

    Unavailable (INDEX_UNAVAILABLE) when Qdrant cannot be reached, DeadlineExceeded (INDEX_SLOW)
    when it does not answer in time, Exhausted (INDEX_EXHAUSTED) when it refuses for load,
    ContractMismatch (INDEX_MISSING) when the collection is not there, Internal (INDEX_REFUSED) when
    it refuses the request. Its own words are logged.
    """
    try:
        async with asyncio.timeout(seconds) as limit:
            yield
    except grpc.aio.AioRpcError as failure:
        raise _told(failure) from failure
    except TimeoutError as failure:
        if not limit.expired():
            raise
        raise _slow() from failure


def _told(failure: grpc.aio.AioRpcError) -> SluiceError:
    if failure.code() is not _Code.NOT_FOUND:  # how set-up asks whether it is needed
        log.warning("index_failed", code=failure.code().name, details=failure.details())
    return _meaning(failure)


def _meaning(failure: grpc.aio.AioRpcError) -> SluiceError:
    match failure.code():
        case _Code.UNAVAILABLE | _Code.CANCELLED:
            return Unavailable("the index does not answer", reason="INDEX_UNAVAILABLE")
        case _Code.DEADLINE_EXCEEDED:
            return _slow()
        case _Code.RESOURCE_EXHAUSTED:
            return Exhausted(
                "the index is at its limit",
                reason="INDEX_EXHAUSTED",
                retry_after=_retry_after(failure),
            )
        case _Code.NOT_FOUND:
            return ContractMismatch("the index has no such collection", reason=INDEX_MISSING)
    return Internal("the index refused the request; the log has its words", reason="INDEX_REFUSED")


def _slow() -> DeadlineExceeded:
    return DeadlineExceeded("the index did not answer in time", reason="INDEX_SLOW")


def _retry_after(failure: grpc.aio.AioRpcError) -> float | None:
    """The whole seconds after which Qdrant wants to be asked again, where it says so."""
    said = str(dict(failure.trailing_metadata() or ()).get("retry-after", ""))
    return float(said) if said.isdecimal() and int(said) else None
