"""A stage as the gateway calls it: one token a stage, bounded time, and what its errors mean here.

Upstream errors end here. What the caller can mend passes on, an outage keeps its kind, anything
else is a bug of ours whose words stay in the stage.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

import grpc
import structlog
from google.protobuf.message import Message
from grpc_health.v1 import health_pb2, health_pb2_grpc

from chassis import channels, deadlines, errors, identity, status
from chassis.errors import SluiceError
from chassis.health import READINESS, Dependency
from gateway.flow import OUTAGES

CHECK_SECONDS = 1.0

# What callers write themselves. A stage's complaint about anything else is ours to mend.
CALLERS_FIELDS = ("question", "filters", "locale")
ANY_FIELD = ("",)

A = TypeVar("A")
Q = TypeVar("Q", bound=Message)
R = TypeVar("R", bound=Message)

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Line:
    """The way to one stage. `limit` bounds each call, in seconds.

    `fields` are those of its requests that callers write.
    """

    stage: str
    channel: grpc.aio.Channel
    minter: identity.Minter
    limit: float
    fields: tuple[str, ...] = CALLERS_FIELDS

    async def call(self, method: channels.Method[A, R], request: A) -> R:
        """The reply to a request, or to an iterator of them.

        Raises one of OUTAGES, InvalidInput, Forbidden, Conflict or Internal.
        """
        own_limit = self._is_own_limit()
        try:
            return await channels.call(
                method, request, stage=self.stage, token=self._token(), limit=self.limit
            )
        except SluiceError as error:
            raise self._meant(error, own_limit=own_limit) from error

    @asynccontextmanager
    async def stream(
        self, method: grpc.aio.UnaryStreamMultiCallable[Q, R], request: Q
    ) -> AsyncIterator[channels.Responses[R]]:
        """The replies; the call ends with the block. The block raises what `call` raises."""
        own_limit = self._is_own_limit()
        try:
            async with channels.stream(
                method, request, stage=self.stage, token=self._token(), limit=self.limit
            ) as responses:
                yield responses
        except SluiceError as error:
            raise self._meant(error, own_limit=own_limit) from error

    def _token(self) -> str:
        return self.minter.mint(identity.current(), self.stage)

    def _is_own_limit(self) -> bool:
        """Whether a call that begins now ends before the request's own deadline."""
        deadline = deadlines.current()
        return deadline is None or self.limit < deadline.remaining()

    def _meant(self, error: SluiceError, *, own_limit: bool) -> SluiceError:
        if _is_down(error) or (own_limit and isinstance(error, errors.DeadlineExceeded)):
            return errors.Unavailable(f"{self.stage} cannot answer", reason=error.reason)
        words = error.message.removeprefix(f"{self.stage}: ")
        if isinstance(error, OUTAGES):
            return error
        field = error.field if isinstance(error, errors.InvalidInput) else ""
        if isinstance(error, errors.InvalidInput) and field.startswith(self.fields):
            return errors.InvalidInput(words, field=field, reason=error.reason)
        if isinstance(error, errors.Forbidden):
            return errors.Forbidden(words, reason=error.reason)
        if isinstance(error, errors.Conflict):
            return errors.Conflict(words, reason=error.reason)
        log.error("stage_failed", stage=self.stage, reason=error.reason, field=field)
        return errors.Internal("internal error; the log has the details")

    async def check(self) -> None:
        """Raise Unavailable unless the stage says that it is ready."""
        check = health_pb2_grpc.HealthStub(self.channel).Check
        request = health_pb2.HealthCheckRequest(service=READINESS)
        try:
            found = await check(request, timeout=CHECK_SECONDS)
        except grpc.aio.AioRpcError as error:
            why = status.distrust(error)
            message = f"{self.stage} cannot be reached{why and f': {why}'}"
            raise errors.Unavailable(message) from error
        if found.status != health_pb2.HealthCheckResponse.SERVING:
            raise errors.Unavailable(f"{self.stage} is not ready")

    def dependency(self, *, needed: bool) -> Dependency:
        return Dependency(self.stage, self.check, needed=needed)


def _is_down(error: SluiceError) -> bool:
    """Whether the stage stands still: set up for another contract, or dead during the call."""
    died = isinstance(error, errors.Internal) and error.reason == "STAGE_FAILED"
    return died or isinstance(error, errors.ContractMismatch)
