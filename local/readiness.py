"""Whether a process answers yet. Each probe returns within about PROBE_LIMIT seconds.

They block, each in a thread: a loop that is busy starting things would take its own delay for the
process's silence, and grpc.aio belongs to one loop a process, where a suite may have its own.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from chassis.certificates import Certificates
from local.ports import LOOPBACK

PROBE_LIMIT = 5.0  # a busy machine is no reason for an alarm

Probe = Callable[[], Awaitable[bool]]


def grpc_ready(
    port: int, service: str = "readiness", certificates: Certificates | None = None
) -> Probe:
    """The standard health service says SERVING for `service`."""

    async def probe() -> bool:
        return await asyncio.to_thread(_serving, port, service, certificates)

    return probe


def http_ready(port: int, path: str = "/healthz") -> Probe:
    """A GET of the path is answered with 200."""

    async def probe() -> bool:
        return await asyncio.to_thread(_found, port, path)

    return probe


def redis_ready(port: int) -> Probe:
    """PING is answered with PONG, which a server that still loads its data does not do."""

    async def probe() -> bool:
        return await asyncio.to_thread(_ponged, port)

    return probe


def _serving(port: int, service: str, certificates: Certificates | None) -> bool:
    with _channel(f"{LOOPBACK}:{port}", certificates) as channel:
        request = health_pb2.HealthCheckRequest(service=service)
        try:
            reply = health_pb2_grpc.HealthStub(channel).Check(request, timeout=PROBE_LIMIT)
        except grpc.RpcError:
            return False
        return bool(reply.status == health_pb2.HealthCheckResponse.SERVING)


def _channel(address: str, certificates: Certificates | None) -> grpc.Channel:
    if certificates is None:
        return grpc.insecure_channel(address)
    told = certificates.current()
    credentials = grpc.ssl_channel_credentials(told.authority, told.key, told.certificate)
    return grpc.secure_channel(address, credentials)


def _found(port: int, path: str) -> bool:
    connection = HTTPConnection(LOOPBACK, port, timeout=PROBE_LIMIT)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == HTTPStatus.OK
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


def _ponged(port: int) -> bool:
    try:
        with (
            socket.create_connection((LOOPBACK, port), timeout=PROBE_LIMIT) as connection,
            connection.makefile("rb") as replies,
        ):
            connection.sendall(b"PING\r\n")
            return replies.readline() == b"+PONG\r\n"
    except OSError:
        return False
