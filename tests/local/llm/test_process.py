"""The process itself, as the official client sees it."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import openai
import pytest
from openai import AsyncStream, Omit, omit
from openai.types.chat import ChatCompletionChunk
from openai.types.shared_params import ResponseFormatJSONSchema

from local import ports
from local.llm.bundle import MODEL

WINDOW = 512
LONG = 400  # tokens; half a minute of work where cores are slow
FORM: ResponseFormatJSONSchema = {
    "type": "json_schema",
    "json_schema": {
        "name": "state",
        "schema": {
            "type": "object",
            "properties": {"harbour": {"type": "string", "enum": ["open", "closed"]}},
            "required": ["harbour"],
            "additionalProperties": False,
        },
    },
}


@contextmanager
def running() -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """The process and its address, ready."""
    port = ports.free(1)[0]
    told = {"SLUICE_LLM_PORT": str(port), "SLUICE_LLM_WINDOW": str(WINDOW)}
    command = (sys.executable, "-m", "local.llm")
    with subprocess.Popen(command, env={**os.environ, **told}, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        while b'"listening"' not in (line := process.stderr.readline()):
            assert line, "the process ended"
        try:
            yield process, f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            assert process.wait(20) == 0


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with running() as (_, url):
        yield url


@pytest.fixture
async def client(url: str) -> AsyncIterator[openai.AsyncOpenAI]:
    async with connected(url) as client:
        yield client


def connected(url: str) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0, timeout=60)


async def writing(
    client: openai.AsyncOpenAI, tokens: int, form: ResponseFormatJSONSchema | Omit = omit
) -> AsyncStream[ChatCompletionChunk]:
    stream: AsyncStream[ChatCompletionChunk] = await client.chat.completions.create(
        model=MODEL,
        messages=[{"role": "user", "content": "Is the harbour open? Tell it at length."}],
        max_tokens=tokens,
        temperature=0,
        stream=True,
        stream_options={"include_usage": True},
        response_format=form,
    )
    return stream


async def first_word(stream: AsyncStream[ChatCompletionChunk]) -> str:
    async for chunk in stream:
        if chunk.choices and chunk.choices[0].delta.content:
            return chunk.choices[0].delta.content
    raise AssertionError("nothing was written")


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(20):
        while not await condition():
            pass


async def test_a_stream_is_held_to_a_schema_and_ends_with_what_was_used(
    client: openai.AsyncOpenAI,
) -> None:
    async with await writing(client, 60, FORM) as stream:
        chunks = [chunk async for chunk in stream]
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert json.loads(text)["harbour"] in {"open", "closed"}
    usage = chunks[-1].usage
    assert usage is not None
    assert usage.prompt_tokens > 10
    assert 0 < usage.completion_tokens <= 60
    assert {chunk.model for chunk in chunks} == {MODEL}


async def test_a_client_that_leaves_frees_its_slot(client: openai.AsyncOpenAI, url: str) -> None:
    async with httpx.AsyncClient(base_url=url) as observer:

        async def idle() -> bool:
            slots = (await observer.get("/slots")).json()
            return not any(slot["is_processing"] for slot in slots)

        async def written() -> float:
            metrics = (await observer.get("/metrics")).text.splitlines()
            (line,) = [one for one in metrics if one.startswith("llamacpp:tokens_predicted_total ")]
            return float(line.split()[1])

        before = await written()
        async with await writing(client, LONG) as stream:
            assert await first_word(stream)
            assert not await idle()
        await until(idle)
        assert await written() < before + LONG


async def test_a_text_above_the_window_is_refused_by_its_code(client: openai.AsyncOpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as refusal:
        await client.chat.completions.create(
            model=MODEL, messages=[{"role": "user", "content": "The ferry is late. " * WINDOW}]
        )
    assert refusal.value.type == "exceed_context_size_error"


async def test_no_web_page_may_read_what_it_writes(url: str) -> None:
    async with httpx.AsyncClient() as browser:
        reply = await browser.get(f"{url}/v1/models", headers={"Origin": "https://example.org"})
    assert reply.headers.get("Access-Control-Allow-Origin", "") == ""


async def test_an_answer_that_is_being_written_is_finished_before_the_process_ends() -> None:
    with running() as (process, url):
        async with connected(url) as client, await writing(client, 16) as stream:
            assert await first_word(stream)
            process.terminate()
            rest = [chunk async for chunk in stream]
    reasons = {chunk.choices[0].finish_reason for chunk in rest if chunk.choices}
    assert reasons & {"stop", "length"}


def test_a_port_that_is_taken_is_named(url: str) -> None:
    port = url.rpartition(":")[2]
    done = subprocess.run(
        [sys.executable, "-m", "local.llm"],
        env={**os.environ, "SLUICE_LLM_PORT": port},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 3
    assert f'"port": {port}, "mend": "free the port or set SLUICE_LLM_PORT' in done.stderr


def test_packages_that_are_not_there_are_named_with_the_command_that_brings_them() -> None:
    done = subprocess.run(
        [sys.executable, "-S", "-c", "from local.llm import bundle; bundle.weights()"],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        check=False,
        timeout=20,
    )
    assert done.returncode == 1
    assert "`make up PROFILE=local-llm` installs and starts them" in done.stderr
