"""The whole suite under load while a random process is killed, paused, restarted or drained."""

import asyncio
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from capacity import Limits
from chassis.identity import AccessLevel
from local import ports
from tests.suite.chaos import faults
from tests.suite.chaos.documents import Reader
from tests.suite.chaos.faults import Fault
from tests.suite.chaos.index import amiss
from tests.suite.chaos.load import Load
from tests.suite.chaos.verdict import Bounds, judge
from tests.suite.conftest import ROOT, Running, started

# Seconds of faults. The short form meets the same ones each time: two kills, a restart, a drain.
SHORT, SHORT_SEED = 26.0, 29
SOAK = float(os.environ.get("CHAOS_SECONDS") or 300)
# Seconds within which the suite is whole again after a fault: most of it is a process that starts.
RECOVERY = 60.0
DEADLINE, SLACK = 15.0, 5.0
JOBS_END = 60.0  # seconds after the load
LIMITS = Limits(
    requests_per_minute=240,
    tokens_per_minute=200_000,
    in_flight=6,
    max_reservation=4_000,
    interactive_reserve=0.5,
)
SETTINGS = {
    "ANSWER_MODE": "generated",
    "ANSWER_MODEL": "scripted",
    "ANSWER_OUTPUT_TOKENS": "200",
    "ANSWER_REQUESTS_PER_MINUTE": f"{LIMITS.requests_per_minute}",
    "ANSWER_TOKENS_PER_MINUTE": f"{LIMITS.tokens_per_minute}",
    "ANSWER_IN_FLIGHT": f"{LIMITS.in_flight}",
    "ANSWER_MAX_RESERVATION": f"{LIMITS.max_reservation}",
    # Of six places two are set aside, one for each process while Redis is away.
    "LOCAL_SHARE": "0.34",
    "ANSWER_DEADLINE": f"{DEADLINE}",
    "INGEST_SECONDS": f"{DEADLINE}",
    "JOB_STARTS_PER_MINUTE": "600",
    "JOB_RETRY_SECONDS": "1",
    "JOB_RAMP_SECONDS": "5",
}


@dataclass(frozen=True, slots=True)
class Field:
    """The suite before a provider that writes down who came."""

    running: Running
    calls: Path


@contextmanager
def before_provider(folder: Path, seed: int) -> Iterator[Field]:
    """A suite whose answers a scripted provider writes."""
    (port,) = ports.free(1)
    calls = folder / "calls.log"
    words = ["--port", str(port), "--log", str(calls), "--seed", str(seed)]
    provider = subprocess.Popen(
        [sys.executable, "-m", "tests.suite.chaos.provider", *words], cwd=ROOT
    )
    told = {**SETTINGS, "ANSWER_BASE_URL": f"http://{ports.LOOPBACK}:{port}/v1"}
    try:
        settings = {f"SLUICE_{name}": text for name, text in told.items()}
        with started(folder / "suite", **settings) as running:
            yield Field(running, calls)
    finally:
        provider.terminate()
        provider.wait(30)


@pytest.fixture
def seed(seconds: float) -> int:
    drawn = SHORT_SEED if seconds == SHORT else random.SystemRandom().getrandbits(32)
    return int(os.environ.get("CHAOS_SEED") or drawn)


@pytest.fixture
def field(tmp_path: Path, seed: int) -> Iterator[Field]:
    with before_provider(tmp_path, seed) as found:
        yield found


@pytest.mark.parametrize(
    "seconds",
    [pytest.param(SHORT, id="short"), pytest.param(SOAK, id="long", marks=pytest.mark.soak)],
)
async def test_whatever_happens_to_a_process_nothing_is_wrong_leaked_lost_or_too_much(
    field: Field, seed: int, seconds: float, capsys: pytest.CaptureFixture[str]
) -> None:
    draw = random.Random(seed)
    load = Load(field.running, draw)
    async with load.connected():
        await filled(load)
        async with load.going_on():
            injected = await injure(load, random.Random(seed), seconds)
        await settled(load)
        problems = await unanswered(load)
        problems += await amiss(f"http://127.0.0.1:{field.running.ports['qdrant']}", load.library)
    verdict = judge(load, injected, field.calls, Bounds(DEADLINE, SLACK, LIMITS))
    with capsys.disabled():
        sys.stdout.write(f"\nseed {seed}\n{verdict.figures}\n")
    assert not [*problems, *verdict.problems], seed


async def filled(load: Load) -> None:
    """Every document is in, and the suite whole."""
    for document in load.library.documents.values():
        assert await faults.comes(partial(load.put, document), RECOVERY), load.calls[-1]
    assert await faults.comes(partial(whole, load), RECOVERY), load.calls[-1]


async def whole(load: Load) -> bool:
    return await faults.ready(load.running) and await load.whole()


async def injure(load: Load, draw: random.Random, seconds: float) -> list[Fault]:
    """One fault after the other, each once all is well again."""
    injected, end = list[Fault](), time.monotonic() + seconds
    for kind, parts in faults.deck(draw):
        await asyncio.sleep(draw.uniform(*faults.LEFT_ALONE))
        if time.monotonic() > end:
            break
        fault = await faults.strike(load.running, kind, parts, draw)
        injected.append(fault)
        fault.whole = await faults.comes(partial(whole, load), RECOVERY)
        if fault.whole is None:
            break
    return injected


async def unanswered(load: Load) -> list[str]:
    """Whatever a reader may read the model answers from now, and nothing else."""
    found = []
    for (tenant, word), document in load.library.documents.items():
        # What is there if it was accepted though nobody heard of it.
        if document.sent != document.accepted:
            await faults.comes(partial(load.put, document), RECOVERY)
        for level in AccessLevel:
            mode = "GENERATED" if document.level(document.accepted) <= level else "ABSTAINED"
            answered = partial(load.answers, Reader(tenant, level), word, mode)
            if not await faults.comes(answered, RECOVERY):
                found.append(f"broken: {tenant} {level.label} {word} is not {mode}")
    return found


async def settled(load: Load) -> None:
    """Every accepted job is looked at until it ends, and once more."""
    end = time.monotonic() + JOBS_END
    for job in load.accepted():
        await faults.comes(partial(load.ended, job), end - time.monotonic())
    for job in load.accepted():
        await load.look(job)
