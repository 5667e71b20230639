"""Two of everything that answers, restarted one after the other under load: nobody notices."""

import asyncio
import os
import random
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import grpc
import httpx
import pytest

from chassis import channels
from chassis.identity import AccessLevel
from gateway.__main__ import ANSWER
from local import ports, profile
from local.ports import LOOPBACK
from local.run import Run
from local.suite import STAGES, environment, part, probe, tiers
from local.supervisor import Policy
from tests.gateway.house import until
from tests.suite.chaos.asking import PATIENCE, Ask, Faces, Told
from tests.suite.chaos.documents import PROBE, STEADY, Document, Library, Reader
from tests.suite.chaos.load import hand_in
from tests.suite.conftest import CONTENT

TWICE = (*STAGES, "gateway")
Work = Callable[[], Awaitable[bool]]

CLOSED = "ConnectError"
PAUSES = (0.05, 0.3)  # seconds between two questions of one of them
BACK = 90.0  # seconds within which a process that was restarted is ready
# Seconds for which a replica has to be ready before the next one goes, as in the manifests.
SETTLED = 2.0
QUESTION = f"At how many bar does the {STEADY} valve close?"


def twin(name: str) -> str:
    return f"{name}2"


def doubled(data: Path) -> Run:
    """The suite with two replicas of each stage and two gateways, which know both of each."""
    numbers = {name: port for name, port in ports.all_free().items() if name != "llm"}
    second = dict(zip((*TWICE, "gateway_grpc"), ports.free(len(TWICE) + 1), strict=True))
    targets = {
        f"SLUICE_{name.upper()}_TARGET": addresses(numbers[name], second[name]) for name in STAGES
    }
    settings = profile.load("embedded", {**os.environ, **targets})
    told = environment(data, numbers, settings)
    beside = {name: part(name, data, {**numbers, **second}, told) for name in TWICE}
    return Run(
        data,
        profile="embedded",
        ports={**numbers, **{twin(name): port for name, port in second.items()}},
        tiers=[
            [
                *tier,
                *(
                    replace(beside[one.name], name=twin(one.name))
                    for one in tier
                    if one.name in TWICE
                ),
            ]
            for tier in tiers(data, numbers, told)
        ],
        report=lambda _: None,
        policy=Policy(),
    )


def addresses(*several: int) -> str:
    return f"ipv4:{','.join(f'{LOOPBACK}:{port}' for port in several)}"


class Steady:
    """Questions by every face, and a document that changes, each call at either gateway.

    Who finds a gateway's door closed goes on to the other one, as a load balancer does; anything
    else that is no answer has failed.
    """

    def __init__(self, sites: Sequence[httpx.AsyncClient], channel: grpc.aio.Channel) -> None:
        self.served: Counter[str] = Counter()
        self.failed: list[Told] = []
        self._sites = sites
        self._channel = channel
        self._reader = Reader("acme", AccessLevel.TEAM)
        documents = Library().documents
        # What changes is another tenant's: no answer may rest on it.
        self._steady, self._changing = documents["acme", STEADY], documents["globex", PROBE]
        self._draw = random.Random(1)

    @asynccontextmanager
    async def going_on(self) -> AsyncIterator[None]:
        stop = asyncio.Event()
        faces: list[Work] = [
            partial(self.ask, face) for face in ("json", "events", "unary", "stream")
        ]
        async with asyncio.TaskGroup() as group:
            for work in [*faces, *faces, self.put]:
                group.create_task(self._repeated(work, stop))
            try:
                yield
            finally:
                stop.set()

    async def _repeated(self, work: Work, stop: asyncio.Event) -> None:
        while not stop.is_set():
            await work()
            await asyncio.sleep(self._draw.uniform(*PAUSES))

    async def ask(self, face: str) -> bool:
        async def at(site: httpx.AsyncClient) -> Told:
            asking: Ask = getattr(Faces(site, self._channel), face)
            return await asking(self._reader, QUESTION)

        told = await self._at_either(at)
        return self._counted(told, told.answer is not None and told.answer.mode in CONTENT)

    async def prepare(self) -> bool:
        return await self._put(self._steady, 1)

    async def put(self) -> bool:
        self._changing.sent += 1
        return await self._put(self._changing, self._changing.sent)

    async def _put(self, document: Document, version: int) -> bool:
        async def at(site: httpx.AsyncClient) -> Told:
            return (await hand_in(site, document, version))[0]

        told = await self._at_either(at)
        return self._counted(told, told.outcome in {"200", "201"})

    async def _at_either(self, call: Callable[[httpx.AsyncClient], Awaitable[Told]]) -> Told:
        first, second = self._draw.sample(self._sites, 2)
        told = await call(first)
        return await call(second) if told.outcome == CLOSED else told

    def _counted(self, told: Told, well: bool) -> bool:  # noqa: FBT001 - what is counted
        if well:
            self.served[told.face] += 1
        else:
            self.failed.append(told)
        return well


@asynccontextmanager
async def before(run: Run) -> AsyncIterator[Steady]:
    """A new connection for each HTTP request, so that none meets one that is about to end."""
    both = addresses(run.ports["gateway_grpc"], run.ports[twin("gateway_grpc")])
    fresh = httpx.Limits(max_keepalive_connections=0)
    async with AsyncExitStack() as opened:
        sites = [
            await opened.enter_async_context(
                httpx.AsyncClient(
                    base_url=f"http://{LOOPBACK}:{run.ports[name]}", timeout=PATIENCE, limits=fresh
                )
            )
            for name in ("gateway", twin("gateway"))
        ]
        connected = channels.connect(both, service=ANSWER, idempotent=False)
        yield Steady(sites, await opened.enter_async_context(connected))


async def restarted(run: Run, name: str) -> None:
    """It was told to end, has ended, and is ready again."""
    pid = run.pids[name]
    os.kill(pid, signal.SIGTERM)

    async def back() -> bool:
        return run.pids[name] != pid and await probe(name.rstrip("2"), run.ports[name])()

    await until(back, BACK)
    await asyncio.sleep(SETTLED)


@pytest.mark.soak  # two minutes and a half: every process starts again, one after the other
async def test_a_rolling_restart_of_every_stage_and_gateway_fails_nobody(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with doubled(tmp_path) as run, before(run) as steady:
        await until(steady.prepare, BACK)
        await until(partial(steady.ask, "json"), BACK)
        steady.failed.clear()
        async with steady.going_on():
            for name in TWICE:
                for replica in (name, twin(name)):
                    await restarted(run, replica)
    with capsys.disabled():
        sys.stdout.write(f"\nserved {dict(steady.served)}, failed {len(steady.failed)}\n")
    assert [(told.face, told.outcome, told.unworded) for told in steady.failed] == []
