"""Streams that were split, cut, repeated and bent at random: an answer, or an error of ours."""

import random
import uuid
from collections import Counter
from collections.abc import AsyncIterator

import pytest

from capacity import SharedBucket, Workload
from chassis import deadlines
from chassis.deadlines import Deadline
from chassis.errors import SluiceError
from providers.chat import ChatClient
from tests.providers.asking import TEXT, ask, endpoint
from tests.scripted_provider import replies
from tests.scripted_provider.pool import FAST
from tests.scripted_provider.server import ScriptedProvider

GOOD = [
    replies.filter_results(),
    replies.chunk("", role="assistant"),
    replies.chunk('{"status": "answered", "answer": "'),
    replies.chunk(TEXT),
    b'data: {"choices": [{"index": 0, "delta": {"content": "\\ud83d"}}]}\n\n',
    b'data: {"choices": [{"index": 0, "delta": {"content": "\\udea2"}}]}\r\n\r\n',
    replies.chunk(refusal=None),
    replies.chunk('[S1]"}', finish="stop"),
    replies.usage(),
    replies.DONE,
]
SPLICES = [
    *(b"\n", b"\r", b"\n\n", b":", b"data: ", b"event: error\n", b"retry: 9\n\n", b": ping\n\n"),
    *(b"\xff", b"\xe2\x80\xa8", b"\x00", b"{", b"[", b"}", b'"', b"null", b"\\ud800", b"9" * 5_000),
    *(b'data: {"error": {"code": 500}}\n\n', b'data: {"choices": null}\n\n', b"[" * 9_000),
    *(b"data: [DONE]\n\n", b'data: {"usage": {"prompt_tokens": -1}}\n\n', b"id: \x00\n"),
]


def bent(chance: random.Random) -> bytes:
    parts = list(GOOD)
    for _ in range(chance.choice([0, 0, 1, 2])):
        at = chance.randrange(len(parts))
        change = chance.choice(["drop", "twice", "cut", "swap"])
        if change == "drop":
            del parts[at]
        elif change == "twice":
            parts.insert(at, parts[at])
        elif change == "cut":
            del parts[at + 1 :]
        else:
            parts[0], parts[at] = parts[at], parts[0]
    stream = bytearray(b"".join(parts))
    for _ in range(chance.choice([0, 1, 1, 2, 4])):
        at = chance.randrange(len(stream) + 1)
        stream[at : at + chance.choice([0, 0, 1, 3])] = chance.choice(SPLICES)
    return bytes(stream)


def split(stream: bytes, chance: random.Random) -> list[bytes]:
    edges = sorted(chance.sample(range(len(stream) + 1), min(len(stream), chance.randrange(9))))
    return [stream[a:b] for a, b in zip([0, *edges], [*edges, len(stream)], strict=True)]


@pytest.fixture
async def client(
    provider: ScriptedProvider, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[ChatClient]:
    """In a pool that is always full, whose circuit stays closed."""
    monkeypatch.setattr("capacity.circuit.FAILURES", 1_000_000)
    bucket = SharedBucket.connect(
        redis_url, uuid.uuid4().hex, FAST, decision_timeout=5, lease=0.05, local_share=0
    )
    async with bucket.acquire(1, Workload.INTERACTIVE, Deadline.after(10).at):
        pass
    client = ChatClient(endpoint(provider.base_url), bucket, key="")
    yield client
    await client.close()
    await bucket.close()


async def fuzz(client: ChatClient, provider: ScriptedProvider, seeds: range) -> Counter[str]:
    """How often each came of it."""
    outcomes: Counter[str] = Counter()
    for seed in seeds:
        chance = random.Random(seed)
        provider.script(replies.stream(*split(bent(chance), chance)))
        deadlines.enter(Deadline.after(5))
        try:
            completion = await ask(client)
        except SluiceError as error:
            outcomes[error.reason] += 1
        else:
            assert completion.finish_reason, seed
            assert completion.text.encode(), seed
            outcomes["answered"] += 1
    assert provider.calls == len(seeds)
    return outcomes


KNOWN = {"answered", "INCOMPLETE", "INVALID_REPLY", "PROVIDER_UNAVAILABLE", "REFUSED"}


async def test_a_bent_stream_is_an_answer_or_an_error_of_ours(
    client: ChatClient, provider: ScriptedProvider
) -> None:
    outcomes = await fuzz(client, provider, range(150))
    assert outcomes.keys() <= KNOWN
    assert min(outcomes["answered"], outcomes["INVALID_REPLY"], outcomes["INCOMPLETE"]) > 5


@pytest.mark.soak
async def test_ten_thousand_bent_streams_are_answers_or_errors_of_ours(
    client: ChatClient, provider: ScriptedProvider
) -> None:
    outcomes = await fuzz(client, provider, range(10_000))
    assert outcomes.keys() <= KNOWN
