"""Calls from one process to a stage: balanced, bounded in time, cancelled to the end."""

from __future__ import annotations  # gRPC's classes are generic in their stubs only

import json
from typing import TypeVar

import grpc
from google.protobuf.message import Message
from opentelemetry import propagate, trace

from chassis import deadlines, status

MESSAGE_BYTES = 32 * 1024 * 1024

Q = TypeVar("Q", bound=Message)
R = TypeVar("R", bound=Message)

_tracer = trace.get_tracer("sluice.chassis")

_OPTIONS: list[tuple[str, int | str]] = [
    ("grpc.max_receive_message_length", MESSAGE_BYTES),
    ("grpc.max_send_message_length", MESSAGE_BYTES),
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    # A stage that comes back is found within these bounds instead of gRPC's two minutes.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 500),
    ("grpc.max_reconnect_backoff_ms", 1_000),
]


def connect(target: str, *, service: str, idempotent: bool) -> grpc.aio.Channel:
    """A channel to `target`, such as dns:///retrieve:50052, for one service.

    Calls spread over every address of the name. Idempotent services are retried by gRPC itself
    while they are unavailable; nothing else retries them.
    """
    options = [*_OPTIONS, ("grpc.service_config", _service_config(service, idempotent=idempotent))]
    return grpc.aio.insecure_channel(target, options=options)


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
    method: grpc.aio.UnaryUnaryMultiCallable[Q, R],
    request: Q,
    *,
    stage: str,
    token: str,
    limit: float,
) -> R:
    """One call within `limit` seconds and the current request's deadline.

    Raises the SluiceError that the stage raised, or one that says how the stage failed.
    """
    timeout = deadlines.within(limit).for_hop()
    # OpenTelemetry's own client interceptor leaves the stage working when this side is cancelled.
    with _tracer.start_as_current_span(
        stage, kind=trace.SpanKind.CLIENT, record_exception=False, set_status_on_exception=False
    ) as span:
        headers = {"authorization": f"Bearer {token}"}
        propagate.inject(headers)
        running = method(request, timeout=timeout, metadata=tuple(headers.items()))
        try:
            return await running
        except grpc.aio.AioRpcError as failure:
            span.set_status(trace.StatusCode.ERROR, failure.code().name)
            raise status.decode(failure, stage) from failure
        finally:
            # Awaiting alone leaves the stage working when this side is cancelled at a bad moment.
            running.cancel()
