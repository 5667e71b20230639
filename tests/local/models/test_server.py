"""The process itself, as the official client sees it."""

import asyncio
import math
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from functools import partial

import httpx
import openai
import pytest

from local import ports
from local.models.encoder import DIMENSIONS, MODEL, TOKEN_LIMIT
from tests.suite.conftest import wait_for

PLACES = 3
BATCH = ["passage: " + "The harbour crane is checked before the first ferry leaves. " * 8] * 60


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    port = ports.free(1)[0]
    told = {"SLUICE_MODELS_PORT": str(port), "SLUICE_MODELS_REQUESTS": str(PLACES)}
    command = (sys.executable, "-m", "local.models")
    with subprocess.Popen(command, env={**os.environ, **told}) as process:
        assert wait_for(partial(is_ready, f"http://127.0.0.1:{port}"), 60), process.poll()
        yield f"http://127.0.0.1:{port}"
        process.terminate()
        assert process.wait(20) == 0


def is_ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/healthz", timeout=2).is_success
    except httpx.TransportError:
        return False


@pytest.fixture
async def client(url: str) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(
        base_url=f"{url}/v1", api_key="none", max_retries=0, timeout=60
    ) as client:
        yield client


async def admitted(client: openai.AsyncOpenAI, question: str) -> list[float]:
    """The vector, as soon as there is a place again."""
    async with asyncio.timeout(20):
        while True:
            try:
                reply = await client.embeddings.create(model=MODEL, input=question)
            except openai.RateLimitError:
                await asyncio.sleep(0.02)
            else:
                return reply.data[0].embedding


def batches(client: openai.AsyncOpenAI, number: int) -> list[asyncio.Task[object]]:
    """Batches that would take far longer than a test."""

    async def batch() -> object:
        return await client.embeddings.create(model=MODEL, input=BATCH)

    return [asyncio.create_task(batch()) for _ in range(number)]


async def abandon(tasks: list[asyncio.Task[object]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_both_encodings_carry_the_same_unit_vectors(client: openai.AsyncOpenAI) -> None:
    inputs = ["query: when is the window?", "passage: when is the window?"]
    floats = await client.embeddings.create(model=MODEL, input=inputs, encoding_format="float")
    packed = await client.embeddings.create(model=MODEL, input=inputs)
    assert [item.index for item in floats.data] == [0, 1]
    for one, other in zip(floats.data, packed.data, strict=True):
        assert one.embedding == pytest.approx(other.embedding, abs=1e-7)
        assert len(one.embedding) == DIMENSIONS
        assert math.hypot(*one.embedding) == pytest.approx(1, abs=1e-5)
    assert floats.data[0].embedding != floats.data[1].embedding
    assert floats.usage == packed.usage
    assert floats.usage.prompt_tokens == floats.usage.total_tokens > len(inputs)


async def test_a_text_above_the_models_limit_is_refused_and_named(
    client: openai.AsyncOpenAI,
) -> None:
    with pytest.raises(openai.BadRequestError) as refusal:
        await client.embeddings.create(
            model=MODEL, input=["query: short", "passage: " + "crane " * TOKEN_LIMIT]
        )
    assert "input[1] has " in refusal.value.message
    assert refusal.value.code == "context_length_exceeded"


async def test_a_text_without_a_prefix_is_refused(client: openai.AsyncOpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="begins with neither 'query: ' nor"):
        await client.embeddings.create(model=MODEL, input="when is the window?")


async def test_no_ligature_is_too_wide_for_the_model(client: openai.AsyncOpenAI) -> None:
    """The engine's buffer overflowed by this character, and took the process with it."""
    for text in ("query: " + "\ufdfa" * 20, "passage: " + "\ufdfb\ufdfa" * 20):
        reply = await client.embeddings.create(model=MODEL, input=text)
        assert math.hypot(*reply.data[0].embedding) == pytest.approx(1, abs=1e-5)
    with pytest.raises(openai.BadRequestError):
        await client.embeddings.create(model=MODEL, input="query: " + "\ufdfa" * 5_000)


async def test_a_body_above_the_limit_is_refused(url: str) -> None:
    async with httpx.AsyncClient() as client:
        reply = await client.post(f"{url}/v1/embeddings", content=b" " * (4 * 1024 * 1024 + 1))
    assert (reply.status_code, reply.json()["error"]["code"]) == (400, "body_too_large")


async def test_a_query_overtakes_a_long_batch(client: openai.AsyncOpenAI) -> None:
    tasks = batches(client, 1)
    await asyncio.wait(tasks, timeout=1)  # long enough for its first texts
    reply = await client.embeddings.create(model=MODEL, input="query: when is the window?")
    assert not tasks[0].done()
    assert len(reply.data) == 1
    await abandon(tasks)


async def test_an_abandoned_batch_gives_its_place_and_the_model_back(
    client: openai.AsyncOpenAI,
) -> None:
    tasks = batches(client, PLACES + 1)
    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    (refusal,) = (task.exception() for task in done)
    assert isinstance(refusal, openai.RateLimitError)
    assert int(refusal.response.headers["retry-after"]) >= 1
    await abandon(tasks)
    assert len(await admitted(client, "query: when is the window?")) == DIMENSIONS


async def test_the_model_is_listed_and_the_process_says_that_it_is_ready(
    client: openai.AsyncOpenAI, url: str
) -> None:
    assert [model.id async for model in client.models.list()] == [MODEL]
    async with httpx.AsyncClient() as plain:
        assert (await plain.get(f"{url}/healthz")).json() == {"status": "ready", "model": MODEL}
