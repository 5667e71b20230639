"""Several processes on one pool: together they take what the provider grants, and no more."""

import asyncio
import json
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Iterable
from itertools import accumulate
from pathlib import Path

import pytest
from redis import Redis

from capacity import SharedBucket, Workload
from capacity.pool import TOKEN
from tests.capacity import pool
from tests.capacity.attempts import HOLD, LEASE, LOAD, Event
from tests.capacity.server import Server

PROCESSES, SECONDS = 4, 1.5
BURST, RATE = 1_000, 59_000 / 60  # tokens, tokens a second
BATCH_SHARE = 0.8


async def start(*words: str) -> Process:
    program = str(Path(__file__).with_name("attempts.py"))
    return await asyncio.create_subprocess_exec(sys.executable, program, *words, stdout=PIPE)


async def test_places_of_a_killed_process_come_back_and_its_tokens_stay_charged(
    shared_server: Server, client: Redis
) -> None:
    pool.fill(client)
    process = await start("hold", shared_server.url)
    assert process.stdout is not None
    assert await asyncio.wait_for(process.stdout.readline(), 20) == b"held\n"
    left = pool.level(client).tokens
    process.kill()
    killed = time.monotonic()
    await process.wait()
    bucket = SharedBucket.connect(
        shared_server.url, pool.NAME, HOLD, decision_timeout=5, lease=LEASE, local_share=0
    )
    async with bucket.acquire(100, Workload.INTERACTIVE, killed + 5):
        assert time.monotonic() - killed < LEASE + 1
        assert pool.level(client).places == 1
    await bucket.close()
    assert round(left / TOKEN) == 700


@pytest.fixture
async def events(shared_server: Server, client: Redis) -> list[Event]:
    """What all of the processes did, under one clock: that of the machine."""
    pool.fill(client)
    processes = [
        await start("load", shared_server.url, str(SECONDS), str(seed)) for seed in range(PROCESSES)
    ]
    outputs = await asyncio.gather(*(process.communicate() for process in processes))
    assert [process.returncode for process in processes] == [0] * PROCESSES
    assert pool.level(client).places == 0
    return [tuple(event) for output, _ in outputs for event in json.loads(output)]


async def test_no_window_holds_more_than_the_pool_grants(events: list[Event]) -> None:
    batch = [event for event in events if event[1] == Workload.BATCH]
    assert excess(events, BURST, RATE) <= 0
    assert excess(batch, BATCH_SHARE * BURST, BATCH_SHARE * RATE) <= 0
    assert excess(events, 20, 2_980 / 60, kind="request") <= 0
    assert most_at_once(events) <= LOAD.in_flight
    assert most_at_once(batch) <= LOAD.in_flight * BATCH_SHARE
    granted = sum(amount for kind, _, amount, _, _ in events if kind == "charge")
    assert granted >= BURST + RATE * SECONDS / 2


def excess(events: Iterable[Event], burst: float, rate: float, kind: str = "charge") -> float:
    """The most that was taken in any window above burst + rate x its length; time is in seconds.

    When the server decided is known to lie between asking and answer. A charge counts only if both
    lie in the window, a refund already if one does.
    """
    charges = sorted((e for e in events if e[0] == kind), key=lambda e: e[4])
    refunds = [e for e in events if e[0] == "refund" and kind == "charge"]
    worst = -burst
    for _, _, _, start, _ in charges[:: max(1, len(charges) // 150)]:
        inside = [(e[4], e[2]) for e in charges if e[3] >= start]
        inside += [(max(e[3], start), -e[2]) for e in refunds if e[4] >= start]
        inside.sort()
        taken = accumulate(amount for _, amount in inside)
        over = (t - rate * (end - start) for t, (end, _) in zip(taken, inside, strict=True))
        worst = max(worst, *(value - burst for value in over))
    return worst


def most_at_once(events: Iterable[Event]) -> int:
    changes = [
        change
        for kind, _, _, begun, ended in events
        if kind == "place"
        for change in ((begun, 1), (ended, -1))
    ]
    return max(accumulate(step for _, step in sorted(changes)))
