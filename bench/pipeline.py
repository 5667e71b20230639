"""What a question costs over all hops, beside a LiteLLM proxy before the same provider.

The provider answers at once, and is also asked directly: what the two add to that is compared.
Everybody asks for whole answers, from one client, in blocks whose order changes. Each question is
new to the suite but for its embedding, which a search beforehand has made. Prints JSON:
milliseconds, those above the direct call, and the processor time of an ask by process. Without
LiteLLM (`make setup-bench` installs it into an environment of its own) only our own are told.
"""

import argparse
import asyncio
import json
import os
import random
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any

import httpx

from bench.parts import litellm, suite
from bench.parts.litellm import Proxy
from bench.parts.processes import cpu_seconds
from bench.parts.rows import Reach, row
from bench.parts.suite import Suite
from bench.parts.windows import percentile
from chassis.identity import AccessLevel
from cli.identity import Identity

BLOCKS, EACH = 40, 25
WARM = 2  # blocks that are not counted
DOCUMENTS = 100  # of four passages
LIMIT = 60.0  # seconds of one call
QUESTION = "How often is the level of the harbour tanks measured?"
SETTINGS = {
    **suite.BOUNDLESS,
    # What `suite` sets for streams: here sentences are released as they are by default.
    "ANSWER_RELEASE": "sentence",
    "REMEMBERED_QUESTIONS": "1000000",
}

Report = dict[str, Any]
Ask = Callable[[str], Awaitable[None]]


@dataclass(slots=True)
class Way:
    """One way to ask, whose processes' work is counted; `seconds` are of its calls."""

    ask: Ask
    pids: Mapping[str, int]
    seconds: list[float] = field(default_factory=list)
    cpu: dict[str, float] = field(default_factory=dict)

    async def block(self, questions: Sequence[str]) -> None:
        before = self._used()
        for question in questions:
            began = time.perf_counter()
            await self.ask(question)
            self.seconds.append(time.perf_counter() - began)
        for name, used in self._used().items():
            self.cpu[name] = self.cpu.get(name, 0.0) + used - before[name]

    def forget(self) -> None:
        self.seconds.clear()
        self.cpu.clear()

    def cpu_ms(self) -> dict[str, float]:
        """Of one ask, by process."""
        return {name: round(1e3 * each / len(self.seconds), 2) for name, each in self.cpu.items()}

    def _used(self) -> dict[str, float]:
        return {name: cpu_seconds(pid) for name, pid in self.pids.items()}


async def completed(client: httpx.AsyncClient, question: str) -> None:
    """An answer of a provider, or of a proxy before it."""
    body = {"model": "scripted", "messages": [{"role": "user", "content": question}]}
    reply = await client.post("/v1/chat/completions", json=body)
    if "harbour tanks" not in reply.json()["choices"][0]["message"]["content"]:
        raise SystemExit(f"not the scripted answer: {reply.text}")


async def asked(client: httpx.AsyncClient, question: str) -> None:
    reply = await client.post("/v1/answers", json={"question": question})
    if reply.json().get("mode") != "GENERATED":
        raise SystemExit(f"not generated: {reply.text}")


async def searched(client: httpx.AsyncClient, question: str) -> None:
    reply = await client.post("/v1/search", json={"question": question})
    if "passages" not in reply.json():
        raise SystemExit(f"nothing found: {reply.text}")


async def timed(started: Suite, peer: Proxy | None, blocks: int, each: int) -> Report:
    async with AsyncExitStack() as held:

        async def client(url: str, **headers: str) -> httpx.AsyncClient:
            opened = httpx.AsyncClient(base_url=url, timeout=LIMIT, headers=headers)
            return await held.enter_async_context(opened)

        token = Identity("bench", suite.TENANT, AccessLevel.TEAM).for_gateway(lifetime=3_600)
        ours = await client(started.url, authorization=f"Bearer {token}")
        direct = await client(f"http://127.0.0.1:{started.provider}")
        ways = {
            "direct": Way(partial(completed, direct), {}),
            "sluice": Way(partial(asked, ours), started.pids()),
        }
        if peer:
            proxy = await client(peer.url, authorization=f"Bearer {peer.key}")
            ways["litellm"] = Way(partial(completed, proxy), {"proxy": peer.pid})
        await _take_turns(ways, partial(searched, ours), blocks, each)
    return {name: _told(way, ways["direct"]) for name, way in ways.items()}


async def _take_turns(ways: Mapping[str, Way], search: Ask, blocks: int, each: int) -> None:
    draw = random.Random(1)  # noqa: S311 - an order
    numbers = count()
    for block in range(WARM + blocks):
        questions = [f"{QUESTION} {next(numbers)}" for _ in range(each)]
        for question in questions:
            await search(question)
        for way in draw.sample(list(ways.values()), len(ways)):
            await way.block(questions)
            if block < WARM:
                way.forget()


def _told(way: Way, direct: Way) -> Report:
    own, floor = _quantiles(way.seconds), _quantiles(direct.seconds)
    if way is direct:
        return {"ms": own}
    cpu = way.cpu_ms()
    return {
        "ms": own,
        "added_ms": {at: round(value - floor[at], 2) for at, value in own.items()},
        "cpu_ms": {"all": round(sum(cpu.values()), 2), **cpu},
    }


def _quantiles(seconds: Sequence[float]) -> dict[str, float]:
    return {f"p{at}": round(1e3 * percentile(seconds, at / 100), 2) for at in (50, 99)}


def _rows(ways: Mapping[str, Report]) -> list[Report]:
    ours, peer = ways["sluice"], ways.get("litellm")
    reach = {"p50": Reach(0.7), "p99": Reach(0.7)}
    beside = "LiteLLM's hop" if peer else "LiteLLM is not installed"
    added = [
        row(
            f"a whole ask above the direct call, {at}",
            ours["added_ms"][at],
            "ms",
            most,
            beside=beside,
            than=peer["added_ms"][at] if peer else None,
        )
        for at, most in reach.items()
    ]
    cpu = row(
        "processor time of an ask, all processes",
        ours["cpu_ms"]["all"],
        "ms",
        Reach(0.75),
        beside=beside,
        than=peer["cpu_ms"]["all"] if peer else None,
    )
    return [*added, cpu]


def measure(blocks: int = BLOCKS, each: int = EACH, documents: int = DOCUMENTS) -> Report:
    load = round(os.getloadavg()[0], 1)
    with ExitStack() as ending:
        started = ending.enter_context(suite.answering(SETTINGS, documents))
        peer = None
        if litellm.installed():
            peer = ending.enter_context(litellm.running(started.provider))
        else:
            print("LiteLLM is not installed: make setup-bench", file=sys.stderr)
        ways = asyncio.run(timed(started, peer, blocks, each))
    return {
        "load": load,
        "asks": blocks * each,
        "documents": documents,
        "ways": ways,
        "rows": _rows(ways),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blocks", type=int, default=BLOCKS)
    parser.add_argument("--each", type=int, default=EACH, help="asks of a block")
    parser.add_argument("--documents", type=int, default=DOCUMENTS)
    parser.add_argument("--json", action="store_true", help="one line, for programs")
    given = parser.parse_args()
    found = measure(given.blocks, given.each, given.documents)
    print(json.dumps(found, indent=None if given.json else 2))


if __name__ == "__main__":
    main()
