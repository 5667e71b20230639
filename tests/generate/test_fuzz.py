"""Provider streams with anything in them: what is said of an answer, and shown of it, holds."""

import json
import random
import re
import time
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from capacity import Limits, SharedBucket, Workload
from services.generate.audience import Delta, Event, Final, Retracted
from services.generate.pipeline import Pipeline
from services.generate.result import Result
from services.generate.verdict import Acceptance, Generated
from tests.generate.asking import TASK, Desk, desk, policy, streamed
from tests.generate.streams import Stream, drawn
from tests.scripted_provider import replies
from tests.scripted_provider.server import ScriptedProvider

ATTEMPTS = 2
CASES = 300
OPENS_WITHIN = 15.0  # seconds
UNLIMITED = Limits(
    requests_per_minute=6e6, tokens_per_minute=6e8, in_flight=8, max_reservation=32_000
)
ACCEPTED = Generated(Acceptance.ACCEPTED)
LABELS = r"S[0-9]{1,4}(?:\s*[,;\u3001\uff0c\uff1b]\s*S[0-9]{1,4})*"
MARK = re.compile(rf"[\[\uff3b\u3010]{{1,2}}\s*({LABELS})\s*[\]\uff3d\u3011]{{1,2}}")
FENCED = re.compile(r"\s*```(?:json)?\s*\n(.*)```\s*", re.DOTALL)


def answer_in(sent: str, sources: Sequence[str]) -> str | None:
    """The answer that the contract allows in a reply, read by this test's own rules."""
    fenced = FENCED.fullmatch(sent)
    try:
        told = json.loads(fenced[1] if fenced else sent, object_pairs_hook=_once)
    except (ValueError, RecursionError):
        return None
    if not isinstance(told, dict) or told.get("status") != "answered":
        return None
    answer, cited = told.get("answer"), told.get("source_ids")
    if not (isinstance(answer, str) and answer.strip() and isinstance(cited, list) and cited):
        return None
    marked = {label for mark in MARK.finditer(answer) for label in re.findall(r"S[0-9]+", mark[1])}
    is_admitted = all(label in sources for label in cited) and marked <= set(cited)
    return answer if is_admitted and marked else None


def _once(fields: list[tuple[str, object]]) -> dict[str, object]:
    if len(dict(fields)) < len(fields):
        raise ValueError("a field twice")
    return dict(fields)


def numbers(text: str) -> set[str]:
    return set(re.findall(r"[0-9]+", re.sub(r"(?<=[0-9])[.,](?=[0-9]{3})", "", text)))


def check_accepted(result: Result, stream: Stream) -> None:
    assert stream.ends_well
    assert not stream.spoiled or stream.spoiled not in result.text
    assert result.text == answer_in(stream.sent, [each.label for each in stream.sources])
    shown = numbers(" ".join(each.text for each in stream.sources))
    # Marks have numbers of their own, and so have brackets that are none.
    assert numbers(re.sub(r"\[+[^\]]*\]+", "", MARK.sub("", result.text))) <= shown


def check_events(events: Sequence[Event]) -> Result:
    *before, final = events
    assert isinstance(final, Final)
    shown = "".join(event.text for event in before if isinstance(event, Delta))
    kinds = [type(event) for event in before]
    if Retracted in kinds:
        assert kinds.count(Retracted) == 1
        assert kinds[-1] is Retracted
        assert shown
        assert final.result.verdict != ACCEPTED
    else:
        assert shown == final.result.text
    return final.result


@asynccontextmanager
async def house(redis_url: str) -> AsyncIterator[tuple[Desk, Sequence[Pipeline]]]:
    """A pool without end, and pipelines that show by sentences and by tokens, and repair or not."""
    bucket = SharedBucket.connect(
        redis_url, uuid.uuid4().hex, UNLIMITED, decision_timeout=5, local_share=0
    )
    async with ScriptedProvider() as provider, desk(provider, bucket) as opened:
        # A new pool admits nobody at first.
        async with bucket.acquire(1, Workload.INTERACTIVE, time.monotonic() + OPENS_WITHIN):
            pass
        candidate = opened.candidate(bucket=bucket, limits=UNLIMITED)
        yield (
            opened,
            [
                opened.pipeline(candidate, policy=policy(ATTEMPTS, release=by, on_invalid=then))
                for by in ("sentence", "token")
                for then in ("fail", "repair")
            ],
        )
    await bucket.close()


async def tried(redis_url: str, seeds: range) -> int:
    """How many of the streams that these seeds draw were accepted."""
    accepted = 0
    async with house(redis_url) as (opened, pipelines):
        provider, bucket = opened.provider, opened.bucket
        for seed in seeds:
            draw = random.Random(seed)
            stream = drawn(draw)
            task = replace(TASK, sources=stream.sources)
            pipeline = draw.choice(pipelines)
            # One stream's failures must not keep the next from being asked for.
            bucket.available()
            provider.arrivals.clear()
            provider._replies.clear()
            provider.script(*[replies.stream(*stream.parts)] * ATTEMPTS)
            if seed % 4:
                events = await streamed(pipeline, task)
                result = check_events(events)
            else:
                result = await pipeline.answer(task)
            if result.verdict == ACCEPTED:
                accepted += 1
                check_accepted(result, stream)
            assert provider.calls <= ATTEMPTS
    return accepted


async def test_no_stream_is_accepted_that_the_contract_forbids(redis_url: str) -> None:
    assert await tried(redis_url, range(CASES)) > CASES / 10


@pytest.mark.soak
@pytest.mark.parametrize("begin", range(0, 10_000, 1_000))
async def test_ten_thousand_streams_hold(redis_url: str, begin: int) -> None:
    assert await tried(redis_url, range(begin, begin + 1_000)) > 100
