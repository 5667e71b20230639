"""Questions keep their room while batch work, such as ingestion, holds all that it may."""

import asyncio
import json
from contextlib import AsyncExitStack
from typing import Any

import pytest

from capacity import CapacityRefused, SharedBucket, Workload
from local import profile
from providers.settings import EmbeddingSettings
from tests.suite.conftest import CONTENT, Running

QUESTION = "When is the production deploy window?"


async def test_a_question_is_answered_while_batch_holds_every_place_of_its_own(
    examples: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in profile.load("embedded", {}).items():
        monkeypatch.setenv(name, value)
    settings = EmbeddingSettings()
    bucket = SharedBucket.connect(
        f"redis://127.0.0.1:{examples.ports['redis']}/0",
        "embeddings",
        settings.embedding_limits(),
        decision_timeout=5,
        local_share=settings.local_share,
        max_processes=settings.max_processes,
    )
    async with AsyncExitStack() as held:
        taken = await hold_all(bucket, held)
        shown = asyncio.create_task(asyncio.to_thread(levels, examples))
        answers = [await asyncio.to_thread(examples.ask, QUESTION) for _ in range(4)]
        embeddings = await shown
    await bucket.close()
    assert {answer.json()["mode"] for answer in answers} <= CONTENT
    assert embeddings["in_flight"]["batch"] == taken == embeddings["batch"]["places"]
    assert taken < embeddings["pool"]["places"]


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
