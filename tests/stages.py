"""A stage as its own process, ready before the test begins and gone after it."""

import asyncio
import os
import sys
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from chassis import channels
from local import ports

START_SECONDS = 120.0  # a stage starts in two; a busy machine is no reason for an alarm


@asynccontextmanager
async def running(
    stage: str, *, ready: str = "readiness", **env: str
) -> AsyncIterator[grpc.aio.Channel]:
    """Start `python -m services.<stage>` and wait until the health name `ready` serves."""
    port = free_port()
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        f"services.{stage}",
        env={**os.environ, "SLUICE_PORT": str(port), "SLUICE_ENV": "development", **env},
        stderr=DEVNULL,
    )
    service = f"sluice.{stage}.v1.{stage.capitalize()}Service"
    channel = channels.connect(f"dns:///127.0.0.1:{port}", service=service, idempotent=True)
    try:
        await until_serving(channel, ready)
        yield channel
    finally:
        await channel.close()
        await _end(process)


def free_port() -> int:
    return ports.free(1)[0]


async def until_serving(channel: grpc.aio.Channel, name: str) -> None:
    stub = health_pb2_grpc.HealthStub(channel)
    request = health_pb2.HealthCheckRequest(service=name)
    async with asyncio.timeout(START_SECONDS):
        async for response in stub.Watch(request, wait_for_ready=True):
            if response.status == health_pb2.HealthCheckResponse.SERVING:
                return
    raise AssertionError("the health stream ended")


async def _end(process: Process) -> None:
    if process.returncode is None:
        process.terminate()
    async with asyncio.timeout(START_SECONDS):
        assert await process.wait() == 0
