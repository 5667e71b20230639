"""What jobs need beside a gateway: a Redis that keeps everything, and a worker process."""

import asyncio
import os
import sys
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import grpc
import httpx
from grpc_health.v1 import health_pb2, health_pb2_grpc
from redis import Redis
from redis.exceptions import RedisError

from local.redis import command, server_binary
from tests.gateway.house import House, Stage, bearer, find_port, until

ENDED = {"done", "failed", "expired", "cancelled", "superseded"}
# Whoever tests something else does not wait for anybody's turn.
QUICK = {
    "JOB_STARTS_PER_MINUTE": "60000",
    "JOB_RETRY_SECONDS": "0.05",
    "JOB_LEASE_SECONDS": "1",
    "JOB_RAMP_SECONDS": "0.1",
    "GRACE_SECONDS": "1",
}


@dataclass
class Vault:
    """The Redis of jobs as the product runs it; it may die at any time."""

    folder: Path
    port: int = field(default_factory=find_port)
    process: Process = field(init=False)

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    async def start(self) -> None:
        line = command(server_binary(), self.port, self.folder, at_once=True)
        self.process = await asyncio.create_subprocess_exec(*line, stdout=DEVNULL)
        await until(self.answers)

    async def answers(self) -> bool:
        try:
            with self.client() as client:
                return bool(client.ping())
        except RedisError:
            return False

    def client(self) -> "Redis":
        return Redis.from_url(self.url)

    async def kill(self) -> None:
        self.process.kill()
        await self.process.wait()


@asynccontextmanager
async def vault(folder: Path) -> AsyncIterator[Vault]:
    kept = Vault(folder)
    await kept.start()
    try:
        yield kept
    finally:
        await kept.kill()


@asynccontextmanager
async def worker(
    behind: Mapping[str, Stage],
    log: Path,
    url: str,
    told: Mapping[str, str] = MappingProxyType({}),
) -> AsyncIterator[Process]:
    """A worker before the stages, ready."""
    port = find_port()
    targets = {
        f"SLUICE_{n.upper()}_TARGET": f"dns:///127.0.0.1:{s.port}" for n, s in behind.items()
    }
    settings = {"ENV": "development", "PORT": str(port), "JOBS_REDIS_URL": url, **QUICK, **told}
    with log.open("ab") as sink:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "gateway.worker",
            env={**os.environ, **targets, **{f"SLUICE_{n}": v for n, v in settings.items()}},
            stderr=sink,
        )
    channel = grpc.aio.insecure_channel(f"127.0.0.1:{port}")
    try:
        await _ready(channel)
        yield process
    finally:
        await channel.close()
        if process.returncode is None:
            process.terminate()
        await asyncio.wait_for(process.wait(), 10)


async def _ready(channel: grpc.aio.Channel) -> None:
    request = health_pb2.HealthCheckRequest(service="readiness")
    watching = health_pb2_grpc.HealthStub(channel).Watch(request, wait_for_ready=True)
    # What the queue library imports takes a busy machine a while.
    async with asyncio.timeout(60):
        async for found in watching:
            if found.status == health_pb2.HealthCheckResponse.SERVING:
                return


async def queue(house: House, question: str, **headers: str) -> str:
    """The id of a job for it."""
    response = await house.ask({"question": question}, Prefer="respond-async", **headers)
    assert response.status_code == 202, response.text
    job_id: str = response.json()["job_id"]
    assert response.headers["location"] == f"/v1/jobs/{job_id}"
    return job_id


async def look(
    house: House, job_id: str, headers: Mapping[str, str] | None = None
) -> httpx.Response:
    return await house.http.get(f"/v1/jobs/{job_id}", headers=headers or bearer())


async def cancel(
    house: House, job_id: str, headers: Mapping[str, str] | None = None
) -> httpx.Response:
    return await house.http.delete(f"/v1/jobs/{job_id}", headers=headers or bearer())


async def state_of(house: House, job_id: str) -> str:
    response = await look(house, job_id)
    return str(response.json()["state"]) if response.status_code == 200 else ""


async def becomes(house: House, job_id: str, *states: str, seconds: float = 10) -> dict[str, Any]:
    """The job, once it is in one of the states."""

    async def there() -> bool:
        return await state_of(house, job_id) in states

    await until(there, seconds)
    found: dict[str, Any] = (await look(house, job_id)).json()
    return found
