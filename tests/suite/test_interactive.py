"""Questions keep their room while batch work, such as ingestion, holds all that it may."""

import asyncio
import json
from collections import Counter
from contextlib import AsyncExitStack
from typing import Any

import httpx
import pytest

from capacity import CapacityRefused, SharedBucket, Workload
from chassis.identity import AccessLevel
from cli.identity import Identity
from local import profile
from providers.settings import EmbeddingSettings
from tests.suite.conftest import CONTENT, Running

QUESTION = "When is the production deploy window?"
BURST = 64


async def test_a_question_is_answered_while_batch_holds_every_place_of_its_own(
    examples: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = embeddings_pool(examples, monkeypatch)
    async with AsyncExitStack() as held:
        taken = await hold_all(bucket, held)
        shown = asyncio.create_task(asyncio.to_thread(levels, examples))
        answers = [await asyncio.to_thread(examples.ask, QUESTION) for _ in range(4)]
        embeddings = await shown
    await bucket.close()
    assert {answer.json()["mode"] for answer in answers} <= CONTENT
    assert embeddings["in_flight"]["batch"] == taken == embeddings["batch"]["places"]
    assert taken < embeddings["pool"]["places"]


async def test_a_burst_ends_in_answers_or_at_the_door_while_batch_holds_its_places(
    examples: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = embeddings_pool(examples, monkeypatch)
    async with AsyncExitStack() as held, httpx.AsyncClient(timeout=60) as client:
        await hold_all(bucket, held)
        asking = (ask(client, examples, f"{QUESTION} {number}") for number in range(BURST))
        ended = Counter(await asyncio.gather(*asking))
    await bucket.close()
    assert ended.keys() <= CONTENT | {"ABSTAINED", "NO_ROOM"}
    assert ended["NO_ROOM"] < BURST


async def ask(client: httpx.AsyncClient, running: Running, question: str) -> str:
    """How it ended: the mode of the answer, or the reason of the refusal."""
    token = Identity("tester", "demo", AccessLevel.TEAM, ()).for_gateway()
    response = await client.post(
        f"{running.url}/v1/answers",
        json={"question": question},
        headers={"Authorization": f"Bearer {token}"},
    )
    said = response.json()
    return str(said["mode"] if response.is_success else said["reason"])


def embeddings_pool(running: Running, monkeypatch: pytest.MonkeyPatch) -> SharedBucket:
    for name, value in profile.load("embedded", {}).items():
        monkeypatch.setenv(name, value)
    settings = EmbeddingSettings()
    return SharedBucket.connect(
        f"redis://127.0.0.1:{running.ports['redis']}/0",
        "embeddings",
        settings.embedding_limits(),
        decision_timeout=5,
        local_share=settings.local_share,
        max_processes=settings.max_processes,
    )


async def hold_all(bucket: SharedBucket, held: AsyncExitStack) -> int:
    """Take every place that batch may take. How many there are."""
    for taken in range(1_000):
        try:
            attempt = await held.enter_async_context(bucket.reserve(1, Workload.BATCH))
        except CapacityRefused as refusal:
            if refusal.reason != "CAPACITY_IN_FLIGHT":
                raise
            return taken
        attempt.report(1)
    raise AssertionError("places without end")


def levels(running: Running) -> dict[str, Any]:
    """The embeddings pool as `sluice capacity` shows it."""
    said = running.sluice("capacity", "--json", "--data", str(running.data))
    (found,) = [pool for pool in json.loads(said.stdout)["pools"] if pool["name"] == "embeddings"]
    pool: dict[str, Any] = found
    return pool
