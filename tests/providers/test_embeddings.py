import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Sequence

import pytest

from capacity import Limits, SharedBucket, Workload
from chassis import deadlines
from chassis.deadlines import Deadline
from chassis.errors import ContractMismatch, DeadlineExceeded, SluiceError
from providers import failures
from providers.embeddings import EmbeddingClient
from tests.scripted_provider import replies
from tests.scripted_provider.pool import PLACES, Pool
from tests.scripted_provider.server import Reply, ScriptedProvider

INPUTS = ["one", "two", "three"]
TOKENS = [10, 20, 30]
VECTORS = [[1.0, 0.0], [0.0, 1.0], [0.5, -0.5]]


@pytest.fixture
async def client(provider: ScriptedProvider, pool: Pool) -> AsyncIterator[EmbeddingClient]:
    client = EmbeddingClient(
        base_url=provider.base_url,
        api_key="",
        model="model-e",
        dimensions=2,
        bucket=pool.bucket,
        attempt_timeout=2,
    )
    yield client
    await client.close()


async def embed(client: EmbeddingClient, workload: Workload = Workload.INTERACTIVE) -> object:
    return await client.embed(INPUTS, TOKENS, workload)


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1]])
@pytest.mark.parametrize("workload", list(Workload))
async def test_vectors_come_back_in_the_order_of_the_inputs(
    client: EmbeddingClient,
    provider: ScriptedProvider,
    pool: Pool,
    order: Sequence[int],
    workload: Workload,
) -> None:
    provider.script(replies.vectors(VECTORS, order, {"prompt_tokens": 33, "total_tokens": 33}))
    assert await embed(client, workload) == VECTORS
    sent = provider.arrivals[0]
    assert sent.path == "/v1/embeddings"
    assert sent.body == {"input": INPUTS, "model": "model-e", "encoding_format": "float"}
    assert (await pool.places_taken(), await pool.tokens_spent()) == (0, 33)


async def test_without_usage_the_estimate_stays_charged(
    client: EmbeddingClient, provider: ScriptedProvider, pool: Pool
) -> None:
    provider.script(replies.vectors(VECTORS))
    assert await embed(client) == VECTORS
    assert await pool.tokens_spent() == sum(TOKENS)


async def test_a_report_of_nothing_is_no_usage(
    client: EmbeddingClient, provider: ScriptedProvider, pool: Pool
) -> None:
    provider.script(replies.vectors(VECTORS, None, {"prompt_tokens": 0, "total_tokens": 0}))
    await embed(client)
    assert await pool.tokens_spent() == sum(TOKENS)


async def test_inputs_that_nobody_counted_cost_at_most_their_bytes(
    client: EmbeddingClient, provider: ScriptedProvider, pool: Pool
) -> None:
    provider.script(replies.vectors(VECTORS))
    await client.embed(INPUTS, [10, 0, 0], Workload.INTERACTIVE)
    assert await pool.tokens_spent() == 10 + len("two") + len("three")


async def test_no_inputs_need_no_call(client: EmbeddingClient, provider: ScriptedProvider) -> None:
    assert await client.embed([], [], Workload.BATCH) == []
    assert provider.arrivals == []


@pytest.mark.parametrize(
    "reply",
    [
        replies.vectors(VECTORS[:2]),
        replies.vectors([*VECTORS, [1.0, 1.0]]),
        replies.vectors(VECTORS, [0, 1, 1]),
        replies.vectors([VECTORS[0], [0.0, 0.0], VECTORS[2]]),
        replies.vectors([VECTORS[0], [1e308, 1e308], VECTORS[2]]),
        replies.document('{"data": [{"index": 0, "embedding": [NaN, 1.0]}]}'),
        replies.document('{"data": [{"index": 0, "embedding": [1e999, 1.0]}]}'),
        replies.document('{"data": [{"index": 0, "embedding": ["x"]}]}'),
        replies.document('{"data": [{"embedding": [1.0, 0.0]}]}'),
        replies.document({"data": None}),
        replies.document("<html>a proxy's page</html>"),
        replies.document(""),
    ],
)
async def test_a_reply_that_does_not_match_the_inputs_is_refused(
    client: EmbeddingClient, provider: ScriptedProvider, pool: Pool, reply: Reply
) -> None:
    provider.script(reply)
    with pytest.raises(failures.InvalidReply):
        await embed(client)
    assert await pool.places_taken() == 0


async def test_vectors_of_another_model_are_a_broken_contract(
    client: EmbeddingClient, provider: ScriptedProvider
) -> None:
    provider.script(replies.vectors([[1.0, 0.0, 0.0]] * 3))
    with pytest.raises(ContractMismatch) as caught:
        await embed(client)
    assert caught.value.reason == "EMBEDDING_DIMENSIONS"


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (replies.refused(500), failures.ProviderUnavailable),
        (replies.refused(401), failures.Misconfigured),
        (replies.refused(404), failures.Misconfigured),
        (replies.refused(400, "context_length_exceeded"), failures.ContextTooLong),
    ],
)
async def test_failures_are_classified_and_settled(
    client: EmbeddingClient,
    provider: ScriptedProvider,
    pool: Pool,
    reply: Reply,
    kind: type[SluiceError],
) -> None:
    provider.script(reply)
    with pytest.raises(kind) as caught:
        await embed(client)
    assert "secret-detail" not in caught.value.message
    assert len(provider.arrivals) == 1
    assert (await pool.places_taken(), await pool.tokens_spent()) == (0, sum(TOKENS))


async def test_batch_work_waits_for_a_place_while_interactive_work_is_refused(
    client: EmbeddingClient, provider: ScriptedProvider
) -> None:
    release = asyncio.Event()

    async def held(exchange: object) -> None:
        await release.wait()
        await replies.vectors(VECTORS)(exchange)  # type: ignore[arg-type] # always an Exchange

    provider.script(*[held] * (PLACES + 1))
    running = [asyncio.create_task(embed(client)) for _ in range(PLACES)]
    await provider.arrival(PLACES - 1)
    waiting = asyncio.create_task(embed(client, Workload.BATCH))
    with pytest.raises(SluiceError, match="in flight"):
        await embed(client)
    assert len(provider.arrivals) == PLACES
    release.set()
    assert await asyncio.gather(*running, waiting) == [VECTORS] * (PLACES + 1)


async def test_batch_work_waits_no_longer_than_its_request(
    client: EmbeddingClient, provider: ScriptedProvider
) -> None:
    provider.script(*[replies.stalled()] * PLACES)
    running = [asyncio.create_task(embed(client)) for _ in range(PLACES)]
    await provider.arrival(PLACES - 1)
    deadlines.enter(Deadline.after(0.3))
    began = time.monotonic()
    with pytest.raises(SluiceError) as caught:
        await embed(client, Workload.BATCH)
    assert caught.value.reason == "CAPACITY_IN_FLIGHT"
    assert time.monotonic() - began < 2
    for call in running:
        call.cancel()
    await asyncio.gather(*running, return_exceptions=True)


async def test_the_requests_deadline_ends_a_stalled_call(
    client: EmbeddingClient, provider: ScriptedProvider, pool: Pool
) -> None:
    provider.script(replies.stalled())
    deadlines.enter(Deadline.after(0.3))
    with pytest.raises(DeadlineExceeded):
        await embed(client)
    exchange = await provider.arrival(0)
    await asyncio.wait_for(exchange.left.wait(), 2)
    assert await pool.places_taken() == 0


@pytest.mark.parametrize(("patience", "admitted"), [(5.0, 3), (0.0, 1)])
async def test_interactive_calls_wait_for_their_turn_only_as_long_as_they_may(
    provider: ScriptedProvider, redis_url: str, patience: float, admitted: int
) -> None:
    # One request at once, the next one half a second later.
    limits = Limits(
        requests_per_minute=121,
        tokens_per_minute=60_000_000,
        in_flight=8,
        max_reservation=100,
        interactive_reserve=0,
        request_burst=1,
    )
    pool = uuid.uuid4().hex
    bucket = SharedBucket.connect(
        redis_url, pool, limits, decision_timeout=5, lease=1, local_share=0
    )
    client = EmbeddingClient(
        base_url=provider.base_url,
        api_key="",
        model="model-e",
        dimensions=3,
        bucket=bucket,
        attempt_timeout=5,
        interactive_wait=patience,
    )
    async with bucket.acquire(1, Workload.BATCH, time.monotonic() + 10) as opening:
        opening.not_begun()
    provider.script(*[replies.vectors([[1.0, 0.0, 0.0]])] * 3)
    calls = (client.embed(["a"], [1], Workload.INTERACTIVE) for _ in range(3))
    done = await asyncio.gather(*calls, return_exceptions=True)
    assert sum(isinstance(vectors, list) for vectors in done) == admitted
    assert len(provider.arrivals) == admitted
    await client.close()
    await bucket.close()
