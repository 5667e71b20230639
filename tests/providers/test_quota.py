import pytest

from capacity import Workload
from chassis.errors import SluiceError
from providers import quota
from providers.chat import ChatClient
from providers.embeddings import EmbeddingClient
from tests import measured
from tests.providers.asking import ask
from tests.scripted_provider import replies
from tests.scripted_provider.pool import Pool
from tests.scripted_provider.server import Exchange, Reply, ScriptedProvider

REQUESTS, TOKENS = "sluice.provider.requests.remaining", "sluice.provider.tokens.remaining"
DIFFERENCE = "sluice.provider.input_tokens.difference"


def headers(requests: str, tokens: str) -> dict[str, str]:
    return {"x-ratelimit-remaining-requests": requests, "x-ratelimit-remaining-tokens": tokens}


def with_headers(*parts: bytes, **head: str) -> Reply:
    async def reply(exchange: Exchange) -> None:
        exchange.head(200, {**replies.STREAM, **head})
        for part in parts:
            await exchange.write(part)

    return reply


async def test_what_a_streamed_reply_says_is_left_is_measured(
    chat: ChatClient, provider: ScriptedProvider
) -> None:
    measured.values()
    whole = (replies.chunk("ok", finish="stop"), replies.usage(), replies.DONE)
    provider.script(with_headers(*whole, **headers("41", "9001")))
    await ask(chat)
    found = measured.values(pool="answers")
    assert (found[REQUESTS], found[TOKENS]) == (41, 9001)


async def test_what_a_refusal_says_is_left_is_measured(
    chat: ChatClient, provider: ScriptedProvider
) -> None:
    measured.values()
    spent = {**headers("0", "17"), "x-ratelimit-limit-requests": "60"}
    provider.script(replies.refused(429, headers=spent))
    with pytest.raises(SluiceError):
        await ask(chat)
    found = measured.values(pool="answers")
    assert (found[REQUESTS], found[TOKENS]) == (0, 17)


@pytest.mark.parametrize("limit", [None, "0", "-1"])
@pytest.mark.parametrize("remaining", ["-1", "0", "", "many", "1.5", "9" * 50])
def test_what_is_no_limit_is_not_measured(remaining: str, limit: str | None) -> None:
    quota.observe(headers("5", "6"), "unlimited")
    measured.values()
    quota.observe(headers("5", "6"), "unlimited")
    limits = {} if limit is None else {"x-ratelimit-limit-requests": limit}
    quota.observe({**headers(remaining, "7"), **limits}, "unlimited")
    found = measured.values(pool="unlimited")
    assert (found[REQUESTS], found[TOKENS]) == (5, 7)


async def test_the_difference_of_the_providers_count_and_ours_is_measured(
    chat: ChatClient, provider: ScriptedProvider
) -> None:
    provider.script(*[replies.answer("one")] * 3)
    before = difference("answers", "less"), difference("answers", "more")
    await ask(chat, counted=100)
    await ask(chat, counted=38)
    await ask(chat, counted=0)  # nobody counted: nothing to compare
    after = difference("answers", "less"), difference("answers", "more")
    assert (after[0] - before[0], after[1] - before[1]) == (60, 2)


async def test_embeddings_are_compared_too(provider: ScriptedProvider, pool: Pool) -> None:
    client = EmbeddingClient(
        base_url=provider.base_url,
        api_key="",
        model="model-e",
        dimensions=2,
        bucket=pool.bucket,
        attempt_timeout=5,
    )
    provider.script(replies.vectors([[1.0, 0.0]], None, {"prompt_tokens": 12}))
    before = difference("embeddings", "more")
    await client.embed(["one"], [10], Workload.BATCH)
    await client.close()
    assert difference("embeddings", "more") - before == 2


def difference(pool: str, reported: str) -> float:
    return measured.values(pool=pool, reported=reported).get(DIFFERENCE, 0)
