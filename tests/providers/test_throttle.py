"""A throttle that one replica sees cools the pool for all of them, before anybody hears of it."""

from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from capacity import (
    CapacityCircuitOpen,
    CapacityRefused,
    Limits,
    SharedBucket,
    Workload,
)
from capacity.circuit import FAILURES
from chassis.errors import Unavailable
from providers import failures
from providers.attempt import UNSAID
from providers.chat import ChatClient
from providers.embeddings import EmbeddingClient
from providers.retry_after import LONGEST
from tests.providers.asking import ask
from tests.scripted_provider import replies
from tests.scripted_provider.pool import Pool
from tests.scripted_provider.server import Reply, ScriptedProvider

# The provider's clock is hours from ours, and says so.
THERE = datetime.now(UTC) + timedelta(hours=5)
ROUND_TRIPS = 2.0  # seconds that the steps between a throttle and the next refusal may take


def date(seconds: float = 0) -> str:
    return format_datetime(THERE + timedelta(seconds=seconds), usegmt=True)


def throttle(**headers: str) -> Reply:
    return replies.refused(429, headers={k.replace("_", "-"): v for k, v in headers.items()})


THROTTLES = [
    (throttle(retry_after="20"), 20),
    (throttle(retry_after="7.5"), 7.5),
    (throttle(retry_after_ms="8500", retry_after="9"), 8.5),
    (throttle(date=date(), retry_after=date(30)), 30),
    (throttle(retry_after="600000"), LONGEST),
    (throttle(retry_after="-5"), UNSAID),
    (throttle(retry_after="soon"), UNSAID),
    (throttle(), UNSAID),
    (throttle(x_ratelimit_reset_requests="1m30s", x_ratelimit_reset_tokens="20ms"), 90),
    (throttle(x_ratelimit_reset_tokens="6m0s"), LONGEST),
    (
        replies.stream(
            replies.chunk("half"), replies.event({"error": {"code": "rate_limit_exceeded"}})
        ),
        UNSAID,
    ),
]


@pytest.fixture
async def embedder(provider: ScriptedProvider, pool: Pool) -> AsyncIterator[EmbeddingClient]:
    client = EmbeddingClient(
        base_url=provider.base_url,
        api_key="",
        model="model-e",
        dimensions=2,
        bucket=pool.bucket,
        attempt_timeout=5,
    )
    yield client
    await client.close()


@pytest.mark.parametrize(("reply", "seconds"), THROTTLES)
async def test_a_throttled_answer_stops_every_replica_in_its_next_call(
    chat: ChatClient, provider: ScriptedProvider, pool: Pool, reply: Reply, seconds: float
) -> None:
    provider.script(reply)
    with pytest.raises(failures.Throttled):
        await ask(chat)
    await refused(pool, seconds)
    with pytest.raises(CapacityRefused):
        await ask(chat)
    assert len(provider.arrivals) == 1


@pytest.mark.parametrize(("reply", "seconds"), THROTTLES[:1])
async def test_a_throttled_embedding_stops_both_classes(
    embedder: EmbeddingClient, provider: ScriptedProvider, pool: Pool, reply: Reply, seconds: float
) -> None:
    provider.script(reply)
    with pytest.raises(failures.Throttled):
        await embedder.embed(["one"], [3], Workload.BATCH)
    await refused(pool, seconds)
    await refused(pool, seconds, Workload.BATCH)


async def refused(pool: Pool, seconds: float, workload: Workload = Workload.INTERACTIVE) -> None:
    with pytest.raises(CapacityRefused) as caught:
        async with pool.replica.reserve(1, workload):
            pass
    assert caught.value.reason == "CAPACITY_COOLDOWN"
    assert caught.value.retry_after is not None
    assert seconds - ROUND_TRIPS < caught.value.retry_after <= seconds


async def test_a_throttle_is_told_even_when_redis_is_lost(
    provider: ScriptedProvider, free_port: Callable[[], int]
) -> None:
    limits = Limits(600_000, 60_000_000, 10, 1_000, 0)
    url = f"redis://127.0.0.1:{free_port()}"
    alone = SharedBucket.connect(url, "embeddings", limits, local_share=0.9, max_processes=1)
    client = EmbeddingClient(
        base_url=provider.base_url,
        api_key="",
        model="model-e",
        dimensions=2,
        bucket=alone,
        attempt_timeout=5,
    )
    provider.script(throttle(retry_after="20"))
    with pytest.raises(failures.Throttled):
        await client.embed(["one"], [3], Workload.BATCH)
    with pytest.raises(CapacityRefused) as caught:
        await client.embed(["one"], [3], Workload.INTERACTIVE)
    assert caught.value.reason == "CAPACITY_COOLDOWN"
    await client.close()
    await alone.close()


@pytest.mark.parametrize(
    "reply",
    [replies.refused(500), replies.refused(503), replies.cut("half"), replies.broken("half")],
)
async def test_repeated_unavailability_opens_the_circuit_and_an_answer_closes_it(
    chat: ChatClient, provider: ScriptedProvider, reply: Reply
) -> None:
    provider.script(*[reply] * (FAILURES - 1), replies.answer("one"), *[reply] * FAILURES)
    for _ in range(FAILURES - 1):
        with pytest.raises(Unavailable):
            await ask(chat)
    assert (await ask(chat)).text == "one"
    for _ in range(FAILURES):
        with pytest.raises(Unavailable):
            await ask(chat)
    with pytest.raises(CapacityCircuitOpen):
        await ask(chat)
    assert len(provider.arrivals) == 2 * FAILURES


async def test_refusals_of_a_provider_that_is_there_leave_the_circuit_closed(
    chat: ChatClient, provider: ScriptedProvider
) -> None:
    provider.script(*[replies.refused(401)] * (FAILURES + 1), replies.answer("one"))
    for _ in range(FAILURES + 1):
        with pytest.raises(failures.Misconfigured):
            await ask(chat)
    assert (await ask(chat)).text == "one"
