"""Calls from one process to a stage: balanced, bounded in time, cancelled to the end."""

from __future__ import annotations  # gRPC's classes are generic in their stubs only

import json
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Generic, Protocol, TypeVar, cast

import grpc
from opentelemetry import propagate, trace

from chassis import deadlines, status
from chassis.certificates import Certificates
from chassis.errors import SluiceError
from chassis.renewed import RenewedChannel

MESSAGE_BYTES = 32 * 1024 * 1024

A_contra = TypeVar("A_contra", contravariant=True)
R_co = TypeVar("R_co", covariant=True)

_tracer = trace.get_tracer("sluice.chassis")

_OPTIONS: list[tuple[str, int | str]] = [
    ("grpc.max_receive_message_length", MESSAGE_BYTES),
    ("grpc.max_send_message_length", MESSAGE_BYTES),
    ("grpc.keepalive_time_ms", 30_000),
    # A starved process is not a dead one.
    ("grpc.keepalive_timeout_ms", 20_000),
    # A stage that comes back is found within these bounds instead of gRPC's two minutes.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 500),
    ("grpc.max_reconnect_backoff_ms", 1_000),
]


class Running(Awaitable[R_co], Protocol[R_co]):
    """A call on its way to its one reply."""

    def cancel(self) -> bool: ...


class Method(Protocol[A_contra, R_co]):
    """A stub's method with one reply; what it takes is one request or an iterator of them."""

    def __call__(
        self, request: A_contra, /, *, timeout: float, metadata: tuple[tuple[str, str], ...]
    ) -> Running[R_co]: ...


class Streaming(Protocol[R_co]):
    """A call on its way to its many replies."""

    def __aiter__(self) -> AsyncIterator[R_co]: ...

    async def read(self) -> object:
        """The next reply, or grpc.aio.EOF."""

    def cancel(self) -> bool: ...


class StreamMethod(Protocol[A_contra, R_co]):
    """A stub's method with many replies to one request."""

    def __call__(
        self, request: A_contra, /, *, timeout: float, metadata: tuple[tuple[str, str], ...]
    ) -> Streaming[R_co]: ...


def connect(
    target: str, *, service: str, idempotent: bool, certificates: Certificates | None = None
) -> grpc.aio.Channel:
    """A channel to `target`, such as dns:///retrieve:50052, for one service.

    Calls spread over every address of the name. Idempotent services are retried by gRPC itself
    while they are unavailable; nothing else retries them. With `certificates` both sides show
    theirs, and the target's has to be for the name in `target`.
    """
    options = [*_OPTIONS, ("grpc.service_config", _service_config(service, idempotent=idempotent))]
    if certificates is None:
        return grpc.aio.insecure_channel(target, options=options)
    return RenewedChannel(certificates, partial(grpc.aio.secure_channel, target, options=options))


def _service_config(service: str, *, idempotent: bool) -> str:
    method: dict[str, object] = {"name": [{"service": service}]}
    if idempotent:
        method["retryPolicy"] = {
            "maxAttempts": 3,
            "initialBackoff": "0.05s",
            "maxBackoff": "0.5s",
            "backoffMultiplier": 2,
            "retryableStatusCodes": ["UNAVAILABLE"],
        }
    return json.dumps({"loadBalancingConfig": [{"round_robin": {}}], "methodConfig": [method]})


async def call(
    method: Method[A_contra, R_co],
    request: A_contra,
    *,
    stage: str,
    token: str,
    limit: float,
) -> R_co:
    """One call within `limit` seconds and the current request's deadline.

    `request` is one message, or an iterator of messages where the method takes a stream of them.
    Raises the SluiceError that the stage raised, or one that says how the stage failed.
    """
    timeout = deadlines.within(limit).for_hop()
    with _headers(stage, token) as headers:
        running = method(request, timeout=timeout, metadata=headers)
        try:
            return await running
        except grpc.aio.AioRpcError as failure:
            raise _failed(failure, stage) from failure
        finally:
            # Awaiting alone leaves the stage working when this side is cancelled at a bad moment.
            running.cancel()


@asynccontextmanager
async def stream(
    method: StreamMethod[A_contra, R_co],
    request: A_contra,
    *,
    stage: str,
    token: str,
    limit: float,
) -> AsyncIterator[Responses[R_co]]:
    """The responses to one request, within `limit` seconds and the current request's deadline.

    The call ends with the block, however that ends. Reading the responses raises the SluiceError
    that the stage raised, or one that says how the stage failed. What is not read yet stays on
    the stage's side, but for some ten kilobytes.
    """
    timeout = deadlines.within(limit).for_hop()
    with _headers(stage, token) as headers:
        running = method(request, timeout=timeout, metadata=headers)
        try:
            yield Responses(running, stage)
        finally:
            # Leaving the iteration alone left the stage working in 11 of 40 cancellations.
            running.cancel()


class Responses(Generic[R_co]):
    """What a stage answers, one by one."""

    def __init__(self, running: Streaming[R_co], stage: str) -> None:
        self._running = running
        self._stage = stage

    def __aiter__(self) -> Responses[R_co]:
        return self

    async def __anext__(self) -> R_co:
        try:
            response = await self._running.read()
        except grpc.aio.AioRpcError as failure:
            raise _failed(failure, self._stage) from failure
        if response is grpc.aio.EOF:
            raise StopAsyncIteration
        return cast("R_co", response)


@contextmanager
def _headers(stage: str, token: str) -> Iterator[tuple[tuple[str, str], ...]]:
    """The metadata of a call, whose span lasts as long as the block.

    OpenTelemetry's own client interceptor leaves the stage working when this side is cancelled.
    """
    with _tracer.start_as_current_span(
        stage, kind=trace.SpanKind.CLIENT, record_exception=False, set_status_on_exception=False
    ):
        headers = {"authorization": f"Bearer {token}"}
        propagate.inject(headers)
        yield tuple(headers.items())


def _failed(failure: grpc.aio.AioRpcError, stage: str) -> SluiceError:
    trace.get_current_span().set_status(trace.StatusCode.ERROR, failure.code().name)
    return status.decode(failure, stage)
