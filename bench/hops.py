"""What one call of a stage costs beside an echo of the same size behind the same interceptors.

Stage and echo take turns; both are asked by the gateway's own way of calling. What a stage needs a
provider or an index for is measured by `retrieve` and `pipeline`. Prints JSON: milliseconds of
both, and their ratio.
"""

import argparse
import asyncio
import json
import os
import random
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import grpc
from google.protobuf.message import Message

from bench.parts.echo import SERVICE
from bench.parts.files import WORDS
from bench.parts.programs import started
from bench.parts.rows import Reach, row
from bench.parts.windows import percentile
from chassis import channels
from chassis.identity import AccessLevel, Caller, Minter, development_key
from local import ports
from sluice.assemble.v1 import assemble_pb2
from sluice.assemble.v1.assemble_pb2_grpc import AssembleServiceStub
from sluice.evidence.v1 import evidence_pb2
from sluice.generate.v1 import generate_pb2
from sluice.generate.v1.generate_pb2_grpc import GenerateServiceStub

ROUNDS = 1_000
WARM = 50  # rounds that are not counted
PASSAGES = 20  # of the larger message
MANY = "assemble, many passages"
BLOCKS_EACH, WORDS_EACH = 3, 25
LIMIT = 30.0  # seconds that one call may take
CALLER = Caller("bench", "bench", AccessLevel.TEAM)
QUESTION = "What has to be checked before a replica is promoted?"

Report = dict[str, Any]
Work = Callable[[], Awaitable[Any]]
# By call, then by who was asked.
Times = dict[str, dict[str, list[float]]]


@dataclass(frozen=True, slots=True)
class Hop:
    """One call: a stage, the stub's method of it, and what it is asked."""

    stage: str
    method: Callable[[grpc.aio.Channel], Any]
    request: Message


@dataclass(frozen=True, slots=True)
class Ports:
    stage: int
    echo: int


def _text(draw: random.Random) -> str:
    return " ".join(draw.choices(WORDS, k=WORDS_EACH)).capitalize() + "."


def _passage(draw: random.Random, number: int) -> evidence_pb2.Passage:
    blocks = [
        evidence_pb2.Block(ordinal=at, kind=evidence_pb2.BLOCK_KIND_PARAGRAPH, text=_text(draw))
        for at in range(BLOCKS_EACH)
    ]
    return evidence_pb2.Passage(
        point_id=f"point-{number}",
        document_id=f"runbook-{number}",
        revision="r1",
        title=f"Runbook {number}",
        section_id="s1",
        heading_path=["Steps"],
        blocks=blocks,
        score=draw.random(),
    )


def _assemble(passages: int) -> assemble_pb2.AssembleRequest:
    draw = random.Random(1)  # noqa: S311 - the same texts in every run
    candidates = [_passage(draw, number) for number in range(passages)]
    return assemble_pb2.AssembleRequest(question=QUESTION, candidates=candidates)


def _generate() -> generate_pb2.GenerateRequest:
    text = "A replica is promoted once the writer is drained."
    block = evidence_pb2.Block(kind=evidence_pb2.BLOCK_KIND_PARAGRAPH, text=text)
    source = evidence_pb2.Source(label="S1", included_text=text, blocks=[block], score=0.9)
    return generate_pb2.GenerateRequest(
        question=QUESTION,
        sources=[source],
        input_tokens=100,
        score_space=evidence_pb2.SCORE_SPACE_COSINE,
    )


def hops(passages: int) -> dict[str, Hop]:
    def assemble(channel: grpc.aio.Channel) -> Any:  # noqa: ANN401 - as gRPC's stubs are typed
        return AssembleServiceStub(channel).Assemble

    def generate(channel: grpc.aio.Channel) -> Any:  # noqa: ANN401 - as above
        return GenerateServiceStub(channel).Generate

    return {
        "assemble, 1 passage": Hop("assemble", assemble, _assemble(1)),
        MANY: Hop("assemble", assemble, _assemble(passages)),
        "generate, extractive": Hop("generate", generate, _generate()),
    }


@contextmanager
def running(asked: Mapping[str, Hop]) -> Iterator[dict[str, Ports]]:
    """The stage of each call and an echo for it, ready."""
    with ExitStack() as ending:

        def start(words: Sequence[str], port: int) -> int:
            told = {"SLUICE_ENV": "development", "SLUICE_PORT": str(port)}
            started(ending, words, told, port)
            return port

        stages = {
            stage: start([f"services.{stage}"], ports.free(1)[0])
            for stage in sorted({hop.stage for hop in asked.values()})
        }
        found = {}
        for name, hop in asked.items():
            (port,) = ports.free(1)
            words = ["bench.parts.edge", "--stage", hop.stage, "--port", str(port)]
            found[name] = Ports(stages[hop.stage], start(words, port))
        yield found


async def timed(running: Mapping[str, Ports], asked: Mapping[str, Hop], rounds: int) -> Times:
    async with AsyncExitStack() as held:

        async def connected(port: int) -> grpc.aio.Channel:
            target = f"dns:///{ports.LOOPBACK}:{port}"
            channel = channels.connect(target, service=SERVICE, idempotent=True)
            return await held.enter_async_context(channel)

        turns = {}
        for name, hop in asked.items():
            both = running[name]
            stage, echo = await connected(both.stage), await connected(both.echo)
            turns[name] = await _ways(hop, stage, echo)
        return await _take_turns(turns, rounds)


async def _ways(hop: Hop, stage: grpc.aio.Channel, echo: grpc.aio.Channel) -> dict[str, Work]:
    """The same call of both, with a reply of the same size."""
    token = Minter(development_key()).mint(CALLER, hop.stage)
    call = partial(channels.call, stage=hop.stage, token=token, limit=LIMIT)
    ask = partial(call, hop.method(stage), hop.request)
    reply = await ask()
    await call(_method(echo, "Keep"), reply.SerializeToString())
    request = hop.request.SerializeToString()
    return {"stage": ask, "echo": partial(call, _method(echo, "Say"), request)}


def _method(channel: grpc.aio.Channel, name: str) -> Any:  # noqa: ANN401 - bytes in, bytes out
    return channel.unary_unary(f"/{SERVICE}/{name}")


async def _take_turns(turns: Mapping[str, Mapping[str, Work]], rounds: int) -> Times:
    """Seconds of each, round by round, in an order that changes."""
    times: Times = {name: {way: [] for way in ways} for name, ways in turns.items()}
    calls = [(name, way, work) for name, ways in turns.items() for way, work in ways.items()]
    draw = random.Random(2)  # noqa: S311 - an order
    for number in range(WARM + rounds):
        draw.shuffle(calls)
        for name, way, work in calls:
            began = time.perf_counter()
            await work()
            if number >= WARM:
                times[name][way].append(time.perf_counter() - began)
    return times


def _figures(seconds: Mapping[str, Sequence[float]]) -> dict[str, float]:
    stage, echo = (1e3 * percentile(seconds[way], 0.5) for way in ("stage", "echo"))
    return {
        "stage_ms": round(stage, 3),
        "echo_ms": round(echo, 3),
        "ratio": round(stage / echo, 3),
    }


def measure(rounds: int = ROUNDS, passages: int = PASSAGES) -> Report:
    load = round(os.getloadavg()[0], 1)
    asked = hops(passages)
    with running(asked) as found_at:
        times = asyncio.run(timed(found_at, asked, rounds))
    found = {name: _figures(seconds) for name, seconds in times.items()}
    rows = [
        row(
            f"one call: {name}",
            figures["stage_ms"],
            "ms",
            Reach(1.25),
            beside="an echo of its size, same interceptors",
            than=figures["echo_ms"],
        )
        for name, figures in found.items()
    ]
    return {
        "load": load,
        "rounds": rounds,
        "passages": passages,
        "hops": found,
        "rows": rows,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--passages", type=int, default=PASSAGES, help="of the larger call")
    parser.add_argument("--json", action="store_true", help="one line, for programs")
    given = parser.parse_args()
    print(json.dumps(measure(given.rounds, given.passages), indent=None if given.json else 2))


if __name__ == "__main__":
    main()
