"""Whoever is killed with accepted jobs: each of them ends once, and nothing is overwritten."""

import asyncio
import signal
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from google.protobuf.message import Message

from sluice.generate.v1.generate_pb2 import GenerateResponse
from tests.gateway.house import ALL, QUESTION, WRITTEN, House, Stage, gateway, served, until
from tests.gateway.jobs.shop import ENDED, Vault, becomes, look, queue, state_of, vault, worker

pytestmark = pytest.mark.asyncio(loop_scope="module")

EACH = 4
GENEROUS = {"JOB_ATTEMPTS": "20"}


@dataclass
class Site:
    """Two workers that share their jobs, and what it takes to start more."""

    folder: Path
    vault: Vault
    stages: dict[str, Stage]
    running: AsyncExitStack
    house: House
    workers: list[Process]

    async def another_gateway(self) -> House:
        told = {"JOBS_REDIS_URL": self.vault.url}
        context = gateway(self.stages, self.folder / "gateway.log", told)
        return await self.running.enter_async_context(context)

    async def another_worker(self, log: str) -> Process:
        context = worker(self.stages, self.folder / log, self.vault.url, GENEROUS)
        return await self.running.enter_async_context(context)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def standing_site(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    folder = tmp_path_factory.mktemp("site")
    async with (
        vault(folder / "redis") as kept,
        served(*ALL) as behind,
        AsyncExitStack() as running,
        gateway(behind, folder / "gateway.log", {"JOBS_REDIS_URL": kept.url}, wait=False) as house,
    ):
        site = Site(folder, kept, behind, running, house, [])
        names = ("one.log", "two.log")
        site.workers = list(await asyncio.gather(*(site.another_worker(name) for name in names)))
        await until(house.listens, 60)
        yield site


@pytest_asyncio.fixture(loop_scope="module")
async def site(standing_site: Site) -> Site:
    for stage in standing_site.stages.values():
        stage.reset()
    return standing_site


async def offered(house: House) -> bool:
    return bool((await house.http.get("/v1/status")).json()["jobs"])


async def crowd(house: House) -> list[str]:
    return [await queue(house, f"{QUESTION} {number}") for number in range(EACH)]


async def settled(house: House, jobs: list[str]) -> dict[str, Any]:
    return {job_id: await becomes(house, job_id, *ENDED, seconds=30) for job_id in jobs}


async def test_a_worker_that_was_away_overwrites_nothing(site: Site) -> None:
    generate, back = site.stages["generate"], asyncio.Event()
    late = GenerateResponse.FromString(WRITTEN.SerializeToString())
    late.text = "Rotate it on day 2. [S1]"

    async def first_comes_late(_: Message) -> Message:
        if len(generate.seen) > 1:
            return WRITTEN
        await back.wait()
        return late

    away, other = site.workers
    other.send_signal(signal.SIGSTOP)
    generate.behaviour = first_comes_late
    job_id = await queue(site.house, QUESTION)
    await generate.reached()
    away.send_signal(signal.SIGSTOP)
    other.send_signal(signal.SIGCONT)
    job = await becomes(site.house, job_id, *ENDED, seconds=30)
    assert (job["state"], job["attempts"]) == ("done", 2)
    back.set()
    away.send_signal(signal.SIGCONT)

    async def came_back() -> bool:
        said = (site.folder / "one.log").read_text()
        return "job_taken_away" in said or '"ending": "lost"' in said

    await until(came_back)
    assert (await look(site.house, job_id)).json() == job


async def test_without_their_redis_jobs_are_refused_in_words_and_questions_are_answered(
    site: Site,
) -> None:
    house = site.house
    release = site.stages["generate"].hold()

    async def missing() -> bool:
        return not await offered(house)

    await until(lambda: offered(house))
    job_id = await queue(house, QUESTION)
    await site.stages["generate"].reached()
    await site.vault.kill()
    await until(missing)
    release.set()
    for response in (await house.ask(Prefer="respond-async"), await look(house, job_id)):
        assert (response.status_code, response.json()["reason"]) == (503, "JOBS_UNAVAILABLE")
    assert (await house.ask()).json()["text"] == WRITTEN.text
    assert (await house.ask(Prefer="respond-async, wait=5")).json()["text"] == WRITTEN.text
    await site.vault.start()
    await until(lambda: offered(house))
    assert await state_of(house, job_id) in {"running", "queued", "done"}
    assert (await becomes(house, job_id, *ENDED, seconds=30))["state"] == "done"


@pytest.mark.parametrize("rounds", [1, pytest.param(15, marks=pytest.mark.soak)])
async def test_accepted_jobs_end_once_whoever_is_killed(site: Site, rounds: int) -> None:
    house, (killed, _) = site.house, site.workers
    jobs: list[str] = []
    for number in range(rounds):
        site.stages["generate"].reset()
        release = site.stages["generate"].hold()
        jobs += await crowd(house)
        await site.stages["generate"].reached()
        killed.kill()
        jobs += await crowd(house)
        house.process.kill()
        await site.vault.kill()
        await site.vault.start()
        release.set()
        house = await site.another_gateway()
        ended = await settled(house, jobs)
        assert {job["state"] for job in ended.values()} == {"done"}
        if number + 1 < rounds:
            killed = await site.another_worker("three.log")
    for job_id, job in ended.items():
        assert (await look(house, job_id)).json()["answer"] == job["answer"]
    with site.vault.client() as client:
        assert client.zcard("sluice:{jobs}:open") == 0
        assert client.zcard("sluice:{jobs}:due") == 0
    assert len(set(jobs)) == 2 * EACH * rounds
