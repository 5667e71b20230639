"""Calls from one process to a stage: balanced, bounded in time, cancelled to the end."""

from __future__ import annotations  # gRPC's classes are generic in their stubs only

import json
from typing import TypeVar

import grpc
from google.protobuf.message import Message
from opentelemetry.instrumentation.grpc import aio_client_interceptors

from chassis import deadlines, status

MESSAGE_BYTES = 32 * 1024 * 1024

Q = TypeVar("Q", bound=Message)
R = TypeVar("R", bound=Message)

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
    traced = aio_client_interceptors()  # type: ignore[no-untyped-call] # published without types
    return grpc.aio.insecure_channel(target, options=options, interceptors=traced)


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
    running = method(request, timeout=timeout, metadata=(("authorization", f"Bearer {token}"),))
    try:
        return await running
    except grpc.aio.AioRpcError as failure:
        raise status.decode(failure, stage) from failure
    finally:
        # Awaiting alone leaves the stage working when this side is cancelled at the wrong moment.
        running.cancel()
