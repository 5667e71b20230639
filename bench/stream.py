"""What streaming through us costs, and how soon a client that leaves ends the work behind it.

A provider writes at a fixed pace and puts the time into each delta. Its answer is read directly
with the vendor's client, from the generate stage over gRPC, and from the gateway as Server-Sent
Events, turn by turn. Prints JSON, in milliseconds: the first text of each way and what it is above
the direct one, how late the deltas of many streams at once are and whether one is lost, and after a
client or a page in a browser has left, when the provider saw that and when the reservation was
settled.
"""

import argparse
import asyncio
import json
import os
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import httpx
from openai import AsyncOpenAI
from redis import Redis

from bench.parts import browser, suite
from bench.parts.deltas import OPENING
from bench.parts.rows import Reach, row
from bench.parts.suite import DOCUMENT, Suite
from chassis import channels
from chassis.identity import AccessLevel, Caller, Minter, development_key
from cli.identity import Identity
from sluice.assemble.v1 import assemble_pb2
from sluice.evidence.v1 import evidence_pb2
from sluice.generate.v1 import generate_pb2 as pb
from sluice.generate.v1.generate_pb2_grpc import GenerateServiceStub

ROUNDS = 200
LEAVING = 40
STREAMS = 20
PAUSE = 0.005  # seconds: 200 deltas a second
EACH = 1_000  # deltas of one of many streams
LIMIT = 60.0  # seconds of one answer
SETTLES_WITHIN = 5.0
LOOK_EVERY = 0.0005
RUNNING = "sluice:{answers}:running"  # the pool's leases
QUESTION = "How often is the level of the harbour tanks measured?"
ENDLESS = f"{QUESTION} deltas=100000"

Report = dict[str, Any]
# The answer's text as it comes, and at last the whole of it, as the verdict tells it.
Texts = AsyncGenerator[str, None]
Way = Callable[[str], Texts]


@dataclass(frozen=True, slots=True)
class Ways:
    """How one answer can be read. Leaving its iteration early is leaving as a client."""

    model: AsyncOpenAI
    stage: grpc.aio.Channel
    gateway: httpx.AsyncClient

    async def direct(self, question: str) -> Texts:
        stream = await self.model.chat.completions.create(
            model="scripted", messages=[{"role": "user", "content": question}], stream=True
        )
        async with stream:
            async for chunk in stream:
                if chunk.choices and chunk.choices[0].delta.content:
                    yield chunk.choices[0].delta.content.removeprefix(OPENING)

    async def generate(self, question: str) -> Texts:
        caller = Caller("bench", "bench", AccessLevel.TEAM, frozenset(), frozenset())
        token = Minter(development_key()).mint(caller, "generate")
        async with channels.stream(
            GenerateServiceStub(self.stage).GenerateStream,
            pb.GenerateStreamRequest(task=_task(question)),
            stage="generate",
            token=token,
            limit=LIMIT,
        ) as events:
            async for event in events:
                match event.WhichOneof("event"):
                    case "delta":
                        yield event.delta
                    case "final":
                        yield event.final.text
                    case other:
                        raise SystemExit(f"the stage said {other}")

    async def ask(self, question: str) -> Texts:
        headers = {"authorization": f"Bearer {_token()}", "accept": "text/event-stream"}
        body = {"question": question}
        async with self.gateway.stream("POST", "/v1/answers", json=body, headers=headers) as reply:
            name = ""
            async for line in reply.aiter_lines():
                field, _, value = line.partition(": ")
                name = value if field == "event" else name
                if field == "data" and name in {"delta", "answer"}:
                    yield str(json.loads(value)["text"])
                elif field == "data" and name != "stage":
                    raise SystemExit(f"the gateway said {name}: {value}")


def _token() -> str:
    return Identity("bench", suite.TENANT, AccessLevel.TEAM).for_gateway()


def _task(question: str) -> pb.GenerateRequest:
    text = DOCUMENT.strip()
    block = evidence_pb2.Block(kind=evidence_pb2.BLOCK_KIND_PARAGRAPH, text=text)
    return pb.GenerateRequest(
        question=question,
        messages=[assemble_pb2.Message(role=assemble_pb2.ROLE_USER, content=question)],
        sources=[evidence_pb2.Source(label="S1", included_text=text, blocks=[block], score=0.9)],
        input_tokens=100,
        score_space=evidence_pb2.SCORE_SPACE_COSINE,
    )


async def first(way: Way) -> float:
    """Seconds until the first text; the rest is read too."""
    began = time.perf_counter()
    took = 0.0
    async with aclosing(way(QUESTION)) as texts:
        async for _ in texts:
            took = took or time.perf_counter() - began
    return took


async def firsts(ways: dict[str, Way], rounds: int) -> Report:
    found: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(rounds + 1):
        for name, way in ways.items():
            took = await first(way)
            # The first turn opens connections.
            found[name] += [took] if turn else []
    direct = _quantiles(found["direct"])
    above = {
        name: {at: round(value - direct[at], 2) for at, value in _quantiles(took).items()}
        for name, took in found.items()
        if name != "direct"
    }
    return {
        "first_ms": {name: _quantiles(took) for name, took in found.items()},
        "above_direct_ms": above,
    }


async def many(way: Way, streams: int, each: int) -> Report:
    """Many streams at once, every delta of them."""
    began = time.perf_counter()
    read = await asyncio.gather(*(_late(way, each) for _ in range(streams)))
    seconds = time.perf_counter() - began
    late = [one for lates, _ in read for one in lates]
    return {
        "streams": streams,
        "deltas": streams * each,
        "lost": sum(lost for _, lost in read),
        "late_ms": _quantiles(late),
        "seconds_to_asked": round(seconds / (each * PAUSE), 3),
    }


async def _late(way: Way, each: int) -> tuple[list[float], int]:
    """How late each delta of a stream came, in seconds, and how many did not come."""
    texts: list[str] = []
    late: list[float] = []
    async with aclosing(way(f"{QUESTION} deltas={each}")) as coming:
        async for text in coming:
            texts.append(text)
            now = time.monotonic_ns()
            if len(late) < each:
                late += [(now - int(word)) / 1e9 for word in text.split() if word.isdigit()]
    *deltas, whole = texts
    shown = "".join(deltas)
    words = [word for word in shown.split() if word.isdigit()]
    return late, each - len(words) if shown == whole else each


async def leave(way: Way, suite: Suite, store: Redis) -> tuple[float, float]:
    """Seconds after leaving in which the provider saw it, and the reservation was settled."""
    texts = way(ENDLESS)
    await anext(texts)
    await anext(texts)

    async def left() -> float:
        began = time.monotonic()
        await texts.aclose()
        return began

    return await _seen(suite, store, left)


async def _seen(
    suite: Suite, store: Redis, leave: Callable[[], Awaitable[float]]
) -> tuple[float, float]:
    """As `leave`, which says when it began."""
    ended = len(_ends(suite.calls))
    looking = asyncio.create_task(_settled(store))
    left = await leave()
    settled = await looking - left
    while len(_ends(suite.calls)) == ended:
        if time.monotonic() - left > SETTLES_WITHIN:
            raise SystemExit("a client left and its provider was not told")
        await asyncio.sleep(LOOK_EVERY)
    return _ends(suite.calls)[-1] - left, settled


async def _settled(store: Redis) -> float:
    """When no reservation is left."""
    deadline = time.monotonic() + SETTLES_WITHIN
    while store.zcard(RUNNING):
        if time.monotonic() > deadline:
            raise SystemExit("a client left and its reservation stays")
        await asyncio.sleep(LOOK_EVERY)
    return time.monotonic()


def _ends(calls: Path) -> list[float]:
    lines = (line.split() for line in calls.read_text().splitlines())
    return [int(at) / 1e6 for kind, at, _ in lines if kind == "end"]


async def leaving(way: Way, suite: Suite, rounds: int) -> Report:
    with Redis.from_url(suite.redis) as store:
        return _told([await leave(way, suite, store) for _ in range(rounds)])


async def leaving_page(suite: Suite, rounds: int) -> Report:
    """The same by the page's button, and by closing the page; empty without a Chromium."""
    executable = browser.chromium()
    if executable is None:
        return {}
    ways = {"page_cancelled": browser.cancelled, "page_closed": browser.closed}
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    with Redis.from_url(suite.redis) as store:
        async with browser.browsing(executable) as started:
            for _ in range(rounds):
                for name, way in ways.items():
                    page = await browser.reading(started, suite.url, _token(), ENDLESS)
                    found[name].append(await _seen(suite, store, partial(way, page)))
    return {name: _told(each) for name, each in found.items()}


def _told(found: Sequence[tuple[float, float]]) -> Report:
    seen, settled = zip(*found, strict=True)
    return {"provider_ms": _quantiles(seen), "settled_ms": _quantiles(settled)}


def _quantiles(seconds: Sequence[float]) -> dict[str, float]:
    ordered = sorted(seconds)
    at = {"p50": len(ordered) // 2, "p99": int(len(ordered) * 0.99), "max": -1}
    return {name: round(1e3 * ordered[place], 2) for name, place in at.items()}


async def measured(suite: Suite, rounds: int, leavers: int, streams: int, each: int) -> Report:
    async with AsyncExitStack() as held:
        model = AsyncOpenAI(
            base_url=f"http://127.0.0.1:{suite.provider}/v1", api_key="-", max_retries=0
        )
        held.push_async_callback(model.close)
        channel = channels.connect(
            f"127.0.0.1:{suite.ports['generate']}",
            service="sluice.generate.v1.GenerateService",
            idempotent=False,
        )
        held.push_async_callback(channel.close)
        client = await held.enter_async_context(
            httpx.AsyncClient(base_url=suite.url, timeout=LIMIT)
        )
        ways = Ways(model, channel, client)
        ours = {"stage": ways.generate, "gateway": ways.ask}
        found = await firsts({"direct": ways.direct, **ours}, rounds)
        found["many"] = {name: await many(way, streams, each) for name, way in ours.items()}
        found["left"] = {name: await leaving(way, suite, leavers) for name, way in ours.items()}
        found["left"] |= await leaving_page(suite, leavers // 2)
        return found


def measure(
    rounds: int = ROUNDS, leavers: int = LEAVING, streams: int = STREAMS, each: int = EACH
) -> Report:
    load = round(os.getloadavg()[0], 1)
    with suite.running(PAUSE) as started:
        found = asyncio.run(measured(started, rounds, leavers, streams, each))
    return {
        "rounds": rounds,
        "leavers": leavers,
        "load": load,
        **found,
        "rows": _rows(found),
    }


def _rows(found: Report) -> list[Report]:
    direct = found["first_ms"]["direct"]["p50"]
    firsts = [
        row(
            f"first text above the direct call, {name}",
            found["above_direct_ms"][name]["p50"],
            "ms",
            most,
            beside="the direct call",
            than=direct,
            ratio=found["first_ms"][name]["p50"] / direct,
        )
        for name, most in (("gateway", Reach(8, "figure")), ("stage", Reach(5, "figure")))
    ]
    lost = sum(each["lost"] for each in found["many"].values())
    return [*firsts, row("deltas lost of many streams", lost, "", Reach(0, "figure"))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--leavers", type=int, default=LEAVING)
    parser.add_argument("--streams", type=int, default=STREAMS)
    parser.add_argument("--each", type=int, default=EACH, help="deltas of each stream")
    parser.add_argument("--json", action="store_true", help="one line, for programs")
    given = parser.parse_args()
    found = measure(given.rounds, given.leavers, given.streams, given.each)
    print(json.dumps(found, indent=None if given.json else 2))


if __name__ == "__main__":
    main()
