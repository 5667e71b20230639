"""An answer read while it comes: what a reader gets, and what is left when it leaves."""

import asyncio
import json
import random
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import pytest

from capacity import CapacityCircuitOpen, CapacityRefused, Workload
from capacity.circuit import FAILURES
from providers import failures
from providers.chat import ChatClient, Completion, Reply
from providers.time_limit import TimeLimit
from tests.providers.asking import ESTIMATE, INPUT, MESSAGES, TEXT, Make
from tests.scripted_provider import replies
from tests.scripted_provider.pool import Pool
from tests.scripted_provider.server import Reply as Scripted
from tests.scripted_provider.server import ScriptedProvider


def streamed(
    client: ChatClient, begins: Callable[[], None] = lambda: None
) -> AbstractAsyncContextManager[Reply]:
    return client.stream(MESSAGES, input_tokens=INPUT, workload=Workload.INTERACTIVE, begins=begins)


async def read(client: ChatClient) -> tuple[list[str], Completion]:
    async with streamed(client) as reply:
        return [delta async for delta in reply], reply.completion()


@pytest.mark.parametrize("style", [replies.answer, replies.dribbled])
async def test_the_deltas_joined_are_the_whole_text(
    make: Make, provider: ScriptedProvider, style: Callable[[str], Scripted]
) -> None:
    provider.script(style(TEXT))
    deltas, completion = await read(make())
    assert completion == Completion(TEXT, "stop", 40, 12, "scripted-model-2026")
    assert "".join(deltas) == TEXT
    assert "" not in deltas


async def test_a_delta_is_there_before_the_next_one_is_sent(
    make: Make, provider: ScriptedProvider
) -> None:
    driven = replies.Driven()
    provider.script(driven)
    driven.send(replies.filter_results(), replies.chunk("", role="assistant"))
    driven.send(replies.chunk("one "))
    async with streamed(make()) as reply:
        assert await anext(reply) == "one "
        assert (reply.model, reply.finish_reason, reply.usage) == ("scripted-model-2026", "", None)
        driven.send(replies.chunk("two"), replies.chunk(finish="stop"), replies.usage())
        assert await anext(reply) == "two"
        driven.end()
        assert [delta async for delta in reply] == []
        assert reply.completion().text == "one two"
        assert reply.usage is not None
        assert reply.usage.charged == 52


@pytest.mark.parametrize("seed", range(30))
async def test_no_delta_ends_within_a_character_however_escapes_are_split(
    make: Make, provider: ScriptedProvider, seed: int
) -> None:
    chance = random.Random(seed)
    units = [
        *("\ud83d", "\udea2", "\ud83d\udea2", "a", "\u2028", "\ud800", "\udc00", "🚢", "é"),
        *("\ufeff", "\x00", ""),
    ]
    text = [chance.choice(units) for _ in range(40)]
    chunks = [
        b"data: %s\n\n" % json.dumps({"choices": [{"delta": {"content": part}}]}).encode()
        for part in text
    ]
    provider.script(replies.stream(*chunks, replies.chunk(finish="stop")))
    deltas, completion = await read(make())
    wanted = "".join(text).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    assert "".join(deltas) == completion.text == wanted
    assert "" not in deltas
    assert all(delta.encode() for delta in deltas)


LEAVES: list[tuple[str, tuple[bytes, ...]]] = [
    ("before the head", ()),
    ("before the first token", (replies.filter_results(), replies.chunk("", role="assistant"))),
    ("in the middle", (replies.chunk("half"),)),
]


@pytest.mark.parametrize(("_when", "parts"), LEAVES)
async def test_a_reader_who_is_cancelled_leaves_nothing_behind(
    make: Make, provider: ScriptedProvider, pool: Pool, _when: str, parts: tuple[bytes, ...]
) -> None:
    provider.script(replies.stalled(*parts))
    reading = asyncio.create_task(read(make()))
    exchange = await provider.arrival(0)
    assert await pool.places_taken() == 1
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert (await pool.places_taken(), await pool.tokens_spent()) == (0, ESTIMATE)
    assert exchange.left_at or await provider.departure(0)


async def test_a_reader_who_has_enough_settles_as_it_leaves(
    make: Make, provider: ScriptedProvider, pool: Pool
) -> None:
    provider.script(replies.stalled(replies.chunk("half")))
    async with streamed(make()) as reply:
        assert await anext(reply) == "half"
        assert await pool.places_taken() == 1
    assert (await pool.places_taken(), await pool.tokens_spent()) == (0, ESTIMATE)
    assert reply.usage is None
    assert await provider.departure(0)


@pytest.mark.parametrize("error", [json.JSONDecodeError("ours", "", 0), TimeoutError(), KeyError()])
async def test_an_error_of_the_readers_own_passes_as_it_is(
    make: Make, provider: ScriptedProvider, pool: Pool, error: Exception
) -> None:
    async def fail() -> None:
        async with streamed(make()) as reply:
            await anext(reply)
            raise error

    provider.script(replies.stalled(replies.chunk("half")))
    with pytest.raises(type(error)) as caught:
        await fail()
    assert caught.value is error
    assert await provider.departure(0)
    assert await pool.places_taken() == 0


async def used_up(reply: Reply) -> None:
    """The reader's own work, which outlasts the attempt."""
    moments = iter((0.0, 1.0))
    reply._attempt.limit.close()
    reply._attempt.limit = TimeLimit(0.5, clock=lambda: next(moments))


async def test_the_end_of_its_time_never_interrupts_what_the_reader_does(
    make: Make, provider: ScriptedProvider, pool: Pool
) -> None:
    provider.script(replies.stalled(replies.chunk("half")))
    async with streamed(make()) as reply:
        await anext(reply)
        await used_up(reply)
        with pytest.raises(failures.AttemptTimeout):
            await anext(reply)
    assert await provider.departure(0)
    assert await pool.places_taken() == 0


async def test_a_slow_reader_says_nothing_of_the_provider(
    make: Make, provider: ScriptedProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("capacity.circuit.FAILURES", 1)
    provider.script(replies.answer(TEXT), replies.answer(TEXT))
    client = make()
    async with streamed(client) as reply:
        await anext(reply)
        await used_up(reply)
        with pytest.raises(failures.AttemptTimeout):
            await anext(reply)
    assert (await read(client))[1].text == TEXT


@pytest.mark.parametrize("deltas", [0, 1])
async def test_an_answer_that_was_not_read_to_its_end_is_none(
    make: Make, provider: ScriptedProvider, deltas: int
) -> None:
    provider.script(replies.answer(TEXT))
    async with streamed(make()) as reply:
        for _ in range(deltas):
            await anext(reply)
        with pytest.raises(failures.Incomplete):
            reply.completion()


async def test_a_call_that_gets_no_room_does_not_begin(
    make: Make, provider: ScriptedProvider
) -> None:
    began: list[int] = []
    provider.script(*[replies.stalled(replies.chunk("half"))] * 2, replies.answer("three"))
    client = make()
    async with streamed(client, lambda: began.append(1)), streamed(client, lambda: began.append(2)):
        with pytest.raises(CapacityRefused):
            async with streamed(client, lambda: began.append(3)):
                pass
    assert began == [1, 2]
    assert provider.calls == 2


@pytest.mark.parametrize("reply", [replies.cut("half"), replies.stream(replies.event({}))])
async def test_failures_that_a_reader_keeps_to_itself_open_the_circuit_all_the_same(
    make: Make, provider: ScriptedProvider, reply: Scripted
) -> None:
    provider.script(*[reply] * FAILURES)
    client = make()
    for _ in range(FAILURES):
        async with streamed(client) as answer:
            with pytest.raises((failures.Incomplete, failures.ProviderUnavailable)):
                _ = [delta async for delta in answer], answer.completion()
    with pytest.raises(CapacityCircuitOpen):
        await read(client)
    assert provider.calls == FAILURES


async def test_a_refusal_shows_no_text_and_is_told_at_the_end(
    make: Make, provider: ScriptedProvider
) -> None:
    provider.script(replies.declined())
    async with streamed(make()) as reply:
        assert [delta async for delta in reply] == []
        with pytest.raises(failures.Refused):
            reply.completion()


async def test_a_filter_in_the_middle_is_told_after_what_came_before(
    make: Make, provider: ScriptedProvider, pool: Pool
) -> None:
    provider.script(replies.filtered("half"))
    async with streamed(make()) as reply:
        assert [delta async for delta in reply] == ["half"]
        with pytest.raises(failures.Refused):
            reply.completion()
    assert await pool.tokens_spent() == 52


UNREADABLE = [
    b'data: {"choices": [\xff\xfe]}\n\n',
    b"data: " + b"[" * 100_000 + b"\n\n",
    b'data: {"choices": [], "n": ' + b"9" * 5_000 + b"}\n\n",
    b'data: {"choices": [{"delta": {"content": 7}}]}\n\n',
    b"data: null\n\n",
    b'data: "text"\n\n',
    b"retry: 100\n\n",
]


@pytest.mark.parametrize("event", UNREADABLE)
async def test_what_nobody_can_read_is_an_invalid_reply(
    make: Make, provider: ScriptedProvider, pool: Pool, event: bytes
) -> None:
    provider.script(replies.stream(replies.chunk("half"), event, replies.DONE))
    with pytest.raises(failures.InvalidReply):
        await read(make())
    assert (await pool.places_taken(), await pool.tokens_spent()) == (0, ESTIMATE)
