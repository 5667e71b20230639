"""Whether a process answers yet. Each probe returns within PROBE_LIMIT seconds."""

import asyncio
from collections.abc import Awaitable, Callable

import grpc
import httpx
from grpc_health.v1 import health_pb2, health_pb2_grpc

from local.ports import LOOPBACK

PROBE_LIMIT = 1.0

Probe = Callable[[], Awaitable[bool]]


def grpc_ready(port: int, service: str = "readiness") -> Probe:
    """The standard health service says SERVING for `service`."""

    async def probe() -> bool:
        # The blocking client in a thread: grpc.aio belongs to one event loop a process, and a
        # suite may run on a loop of its own beside the caller's.
        return await asyncio.to_thread(_serving, port, service)

    return probe


def http_ready(port: int, path: str = "/healthz") -> Probe:
    """A GET of the path is answered with 200."""

    async def probe() -> bool:
        try:
            async with httpx.AsyncClient(timeout=PROBE_LIMIT, trust_env=False) as client:
                reply = await client.get(f"http://{LOOPBACK}:{port}{path}")
        except httpx.HTTPError:
            return False
        return reply.status_code == httpx.codes.OK

    return probe


def redis_ready(port: int) -> Probe:
    """PING is answered with PONG, which a server that still loads its data does not do."""

    async def probe() -> bool:
        try:
            async with asyncio.timeout(PROBE_LIMIT):
                return await _ping(port) == b"+PONG\r\n"
        except (OSError, TimeoutError):
            return False

    return probe


def _serving(port: int, service: str) -> bool:
    with grpc.insecure_channel(f"{LOOPBACK}:{port}") as channel:
        request = health_pb2.HealthCheckRequest(service=service)
        try:
            reply = health_pb2_grpc.HealthStub(channel).Check(request, timeout=PROBE_LIMIT)
        except grpc.RpcError:
            return False
        return bool(reply.status == health_pb2.HealthCheckResponse.SERVING)


async def _ping(port: int) -> bytes:
    reader, writer = await asyncio.open_connection(LOOPBACK, port)
    try:
        writer.write(b"PING\r\n")
        return await reader.readline()
    finally:
        writer.close()
        await writer.wait_closed()
