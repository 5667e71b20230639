import asyncio
import time
from collections.abc import Callable

import pytest

from capacity import CapacityRefused, Workload
from chassis import deadlines
from chassis.deadlines import Deadline
from chassis.errors import DeadlineExceeded, SluiceError
from providers import failures
from providers.attempt import UNCOUNTED_TOKENS
from providers.chat import ChatMessage, Completion
from providers.endpoint import ChatOptions
from tests.providers.asking import ESTIMATE, MESSAGES, OUTPUT, TEXT, Make, ask
from tests.scripted_provider import replies
from tests.scripted_provider.pool import Pool
from tests.scripted_provider.server import Exchange, Reply, ScriptedProvider


@pytest.mark.parametrize("style", [replies.answer, replies.dribbled])
async def test_a_whole_stream_is_the_answer_byte_for_byte(
    make: Make,
    provider: ScriptedProvider,
    pool: Pool,
    style: Callable[[str], Reply],
) -> None:
    provider.script(style(TEXT))
    completion = await ask(make())
    assert completion == Completion(TEXT, "stop", 40, 12, "scripted-model-2026")
    assert (await pool.places_taken(), await pool.tokens_spent()) == (0, 52)


async def test_what_is_sent_follows_the_options(make: Make, provider: ScriptedProvider) -> None:
    provider.script(replies.answer("one"), replies.answer("two"))
    await ask(make())
    reasoning = ChatOptions(
        output_tokens=OUTPUT, limit_parameter="max_completion_tokens", reasoning_effort="low"
    )
    await ask(make(options=reasoning), schema={"type": "object"})
    plain, structured = (exchange.body for exchange in provider.arrivals)
    assert plain == {
        "model": "model-a",
        "messages": [{"role": m.role, "content": m.content} for m in MESSAGES],
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": OUTPUT,
        "temperature": 0,
    }
    assert "temperature" not in structured
    assert structured["max_completion_tokens"] == OUTPUT
    assert structured["reasoning_effort"] == "low"
    assert structured["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "answer", "strict": True, "schema": {"type": "object"}},
    }


async def test_chunks_without_choices_first_and_last_are_accepted(
    make: Make, provider: ScriptedProvider
) -> None:
    provider.script(
        replies.stream(
            replies.filter_results(),
            replies.chunk("ok"),
            replies.chunk(finish="stop"),
            replies.usage(),
            replies.DONE,
        )
    )
    assert (await ask(make())).text == "ok"


async def test_what_is_thought_is_charged_though_only_the_total_counts_it(
    make: Make, provider: ScriptedProvider, pool: Pool
) -> None:
    counts = {"prompt_tokens": 40, "completion_tokens": 12, "total_tokens": 90}
    end = replies.chunk("ok", finish="stop")
    provider.script(replies.stream(end, replies.usage(counts), replies.DONE))
    await ask(make())
    assert await pool.tokens_spent() == 90


EARLY = replies.usage({"prompt_tokens": 40, "completion_tokens": 1})
NOTHING = replies.usage({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0})


@pytest.mark.parametrize(
    ("parts", "spent"),
    [
        ((EARLY, replies.chunk("half")), ESTIMATE),
        ((NOTHING, replies.chunk("half")), ESTIMATE),
        ((EARLY, replies.chunk("ok", finish="stop"), NOTHING), ESTIMATE),
        ((replies.chunk("ok", finish="stop"), replies.usage(), NOTHING), 52),
    ],
)
async def test_early_and_empty_reports_are_no_usage(
    make: Make, provider: ScriptedProvider, pool: Pool, parts: tuple[bytes, ...], spent: int
) -> None:
    provider.script(replies.stream(*parts))
    await asyncio.gather(ask(make()), return_exceptions=True)
    assert (await pool.places_taken(), await pool.tokens_spent()) == (0, spent)


@pytest.mark.parametrize("words", ["", "x" * 90, "x" * 90_000])
async def test_messages_that_nobody_counted_cost_a_bounded_default(
    make: Make, provider: ScriptedProvider, pool: Pool, words: str
) -> None:
    provider.script(replies.stream(replies.chunk("ok", finish="stop"), replies.DONE))
    messages = [ChatMessage("user", words)]
    await make().complete(messages, input_tokens=0, workload=Workload.INTERACTIVE)
    expected = min(max(1, len(words)), UNCOUNTED_TOKENS) + OUTPUT
    assert await pool.tokens_spent() == expected


async def test_the_last_usage_counts(make: Make, provider: ScriptedProvider, pool: Pool) -> None:
    running = {"prompt_tokens": 40, "completion_tokens": 1}
    provider.script(
        replies.stream(
            replies.usage(running),
            replies.chunk("ok", finish="stop"),
            replies.usage(),
            replies.DONE,
        )
    )
    assert (await ask(make())).output_tokens == 12
    assert await pool.tokens_spent() == 52


@pytest.mark.parametrize("counts", [None, {}, {"prompt_tokens": "many", "completion_tokens": -1}])
async def test_without_readable_usage_the_estimate_stays_charged(
    make: Make, provider: ScriptedProvider, pool: Pool, counts: dict[str, int] | None
) -> None:
    parts = [replies.chunk("ok", finish="stop")]
    parts += [] if counts is None else [replies.usage(counts)]
    provider.script(replies.stream(*parts, replies.DONE))
    assert (await ask(make())).input_tokens is None
    assert (await pool.places_taken(), await pool.tokens_spent()) == (0, ESTIMATE)


async def test_escaped_surrogates_in_two_deltas_become_one_character(
    make: Make, provider: ScriptedProvider
) -> None:
    halves = [
        b'data: {"choices": [{"index": 0, "delta": {"content": "\\ud83d"}}]}\n\n',
        b'data: {"choices": [{"index": 0, "delta": {"content": "\\udea2 \\ud83d"}}]}\n\n',
    ]
    provider.script(replies.stream(*halves, replies.chunk(finish="stop"), replies.DONE))
    assert (await ask(make())).text == "🚢 \ufffd"


async def test_an_answer_at_its_limit_says_so(make: Make, provider: ScriptedProvider) -> None:
    provider.script(replies.stream(replies.chunk("half an"), replies.chunk(finish="length")))
    assert (await ask(make())).finish_reason == "length"


FAILURES: list[tuple[Reply, type[SluiceError], str]] = [
    (replies.refused(500), failures.ProviderUnavailable, "PROVIDER_UNAVAILABLE"),
    (replies.refused(503), failures.ProviderUnavailable, "PROVIDER_UNAVAILABLE"),
    (replies.refused(408), failures.ProviderUnavailable, "PROVIDER_UNAVAILABLE"),
    (replies.refused(401), failures.Misconfigured, "PROVIDER_CREDENTIALS"),
    (replies.refused(403), failures.Misconfigured, "PROVIDER_CREDENTIALS"),
    (replies.refused(404), failures.Misconfigured, "DEPLOYMENT_UNKNOWN"),
    (replies.refused(400), failures.Misconfigured, "PROVIDER_REJECTED"),
    (replies.refused(422), failures.Misconfigured, "PROVIDER_REJECTED"),
    (
        replies.refused(400, "context_length_exceeded"),
        failures.ContextTooLong,
        "CONTEXT_LENGTH",
    ),
    (replies.refused(400, "content_filter"), failures.Refused, "REFUSED"),
    (
        replies.stream(replies.chunk(None, finish="content_filter"), replies.DONE),
        failures.Refused,
        "REFUSED",
    ),
    (
        replies.stream(replies.chunk(refusal="I cannot"), replies.chunk(finish="stop")),
        failures.Refused,
        "REFUSED",
    ),
    (replies.cut(TEXT), failures.Incomplete, "INCOMPLETE"),
    (replies.stream(), failures.Incomplete, "INCOMPLETE"),
    (replies.broken("half"), failures.ProviderUnavailable, "PROVIDER_UNAVAILABLE"),
    (
        replies.stream(b'event: error\ndata: {"message": "secret-detail"}\n\n'),
        failures.ProviderUnavailable,
        "PROVIDER_UNAVAILABLE",
    ),
    (
        replies.stream(
            replies.chunk("half"), replies.event({"error": {"message": "secret-detail"}})
        ),
        failures.ProviderUnavailable,
        "PROVIDER_UNAVAILABLE",
    ),
    (replies.stream(b"retry: 100\n\n"), failures.InvalidReply, "INVALID_REPLY"),
    (replies.stream(b"data: not json\n\n"), failures.InvalidReply, "INVALID_REPLY"),
    (replies.stream(b"data: [1]\n\n"), failures.InvalidReply, "INVALID_REPLY"),
    (
        replies.stream(replies.event({"choices": [{"delta": {"content": {"a": 1}}}]})),
        failures.InvalidReply,
        "INVALID_REPLY",
    ),
    (
        replies.stream(replies.event({"choices": [None]})),
        failures.InvalidReply,
        "INVALID_REPLY",
    ),
]


@pytest.mark.parametrize(("reply", "kind", "reason"), FAILURES)
async def test_every_failure_has_its_class_and_reason_and_is_settled(  # noqa: PLR0917 - as above
    make: Make,
    provider: ScriptedProvider,
    pool: Pool,
    reply: Reply,
    kind: type[SluiceError],
    reason: str,
) -> None:
    provider.script(reply)
    with pytest.raises(kind) as caught:
        await ask(make())
    assert caught.value.reason == reason
    assert "secret-detail" not in caught.value.message
    assert len(provider.arrivals) == 1
    assert (await pool.places_taken(), await pool.tokens_spent()) == (0, ESTIMATE)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "600000"}, 120),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
async def test_a_throttle_says_how_long_to_wait(
    make: Make, provider: ScriptedProvider, headers: dict[str, str], seconds: float | None
) -> None:
    provider.script(replies.refused(429, headers=headers))
    with pytest.raises(failures.Throttled) as caught:
        await ask(make())
    assert caught.value.retry_after == seconds


async def test_a_provider_that_takes_no_connection_costs_nothing(
    make: Make, pool: Pool, free_port: Callable[[], int]
) -> None:
    client = make(base_url=f"http://127.0.0.1:{free_port()}/v1")
    with pytest.raises(failures.ProviderUnavailable):
        await ask(client)
    assert (await pool.places_taken(), await pool.tokens_spent()) == (0, 0)
    with pytest.raises(failures.ProviderUnavailable):
        await client.reachable()


async def test_a_proxy_that_the_environment_names_is_spoken_to_but_for_its_exceptions(
    make: Make, provider: ScriptedProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", provider.base_url.removesuffix("/v1"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    provider.script(replies.answer(TEXT), replies.answer(TEXT))
    for base_url in ("http://model.invalid/v1", provider.base_url):
        assert (await ask(make(base_url=base_url))).text == TEXT
    asked = [exchange.path for exchange in provider.arrivals]
    assert asked == ["http://model.invalid/v1/chat/completions", "/v1/chat/completions"]


async def test_a_provider_that_listens_is_reachable_without_a_request(
    make: Make, provider: ScriptedProvider
) -> None:
    await make().reachable()
    assert provider.arrivals == []


@pytest.mark.parametrize("parts", [(), (replies.chunk("half"),)])
async def test_a_stalled_provider_ends_with_the_attempt_and_is_let_go(
    make: Make, provider: ScriptedProvider, pool: Pool, parts: tuple[bytes, ...]
) -> None:
    provider.script(replies.stalled(*parts))
    began = time.monotonic()
    with pytest.raises(failures.AttemptTimeout):
        await ask(make(attempt_seconds=1))
    assert time.monotonic() - began < 3
    exchange = await provider.arrival(0)
    await asyncio.wait_for(exchange.left.wait(), 2)
    assert (await pool.places_taken(), await pool.tokens_spent()) == (0, ESTIMATE)


async def test_a_dribble_that_never_ends_is_bounded_in_total(
    make: Make, provider: ScriptedProvider
) -> None:
    async def drip(exchange: Exchange) -> None:
        exchange.head(200, replies.STREAM)
        while not exchange.left.is_set():
            await exchange.write(replies.chunk("a"))
            await asyncio.sleep(0.02)

    provider.script(drip)
    with pytest.raises(failures.AttemptTimeout):
        await ask(make(attempt_seconds=0.3))


async def test_a_spent_request_is_no_attempt_timeout(
    make: Make, provider: ScriptedProvider, pool: Pool
) -> None:
    provider.script(replies.stalled())
    deadlines.enter(Deadline.after(0.3))
    with pytest.raises(DeadlineExceeded):
        await ask(make())
    assert await pool.places_taken() == 0


async def test_nothing_is_sent_after_the_deadline(
    make: Make, provider: ScriptedProvider, pool: Pool
) -> None:
    deadlines.enter(Deadline.after(-1))
    with pytest.raises(DeadlineExceeded):
        await ask(make())
    assert provider.arrivals == []
    assert (await pool.places_taken(), await pool.tokens_spent()) == (0, 0)


@pytest.mark.parametrize("parts", [(), (replies.chunk("half"),)])
async def test_a_cancelled_call_closes_the_connection_and_gives_its_place_back(
    make: Make, provider: ScriptedProvider, pool: Pool, parts: tuple[bytes, ...]
) -> None:
    provider.script(replies.stalled(*parts))
    call = asyncio.create_task(ask(make()))
    exchange = await provider.arrival(0)
    assert await pool.places_taken() == 1
    call.cancel()
    cancelled_at = time.monotonic()
    with pytest.raises(asyncio.CancelledError):
        await call
    await asyncio.wait_for(exchange.left.wait(), 2)
    assert exchange.left_at is not None
    assert exchange.left_at - cancelled_at < 1
    assert (await pool.places_taken(), await pool.tokens_spent()) == (0, ESTIMATE)


@pytest.mark.parametrize("steps", [0, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377])
async def test_a_caller_who_leaves_at_any_point_leaves_no_place_taken(
    make: Make, provider: ScriptedProvider, pool: Pool, steps: int
) -> None:
    provider.script(replies.answer(TEXT))
    call = asyncio.create_task(ask(make()))
    for _ in range(steps):
        await asyncio.sleep(0)
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)
    assert await pool.places_taken() == 0


async def test_calls_above_the_places_are_refused_before_the_provider_sees_them(
    make: Make, provider: ScriptedProvider
) -> None:
    provider.script(*[replies.stalled()] * 2)
    client = make()
    running = [asyncio.create_task(ask(client)) for _ in range(2)]
    await provider.arrival(1)
    with pytest.raises(CapacityRefused) as caught:
        await ask(client)
    assert caught.value.reason == "CAPACITY_IN_FLIGHT"
    for call in running:
        call.cancel()
    await asyncio.gather(*running, return_exceptions=True)
    assert len(provider.arrivals) == 2


async def test_an_answer_that_does_not_end_is_cut_off(
    make: Make, provider: ScriptedProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("providers.chat.LONGEST", 1_000)
    provider.script(replies.stream(*[replies.chunk("word " * 20)] * 20))
    with pytest.raises(failures.InvalidReply):
        await ask(make())
