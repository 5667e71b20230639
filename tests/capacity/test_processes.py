"""Several processes on one pool: together they take what the provider grants, and no more."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

import pytest
from redis import Redis

from capacity import Limits, Workload
from capacity.pool import REQUEST, TOKEN, WINDOW
from tests.capacity import pool
from tests.capacity.attempts import HOLD, LEASE, LOAD, Event, Plan
from tests.capacity.buckets import bucket, until
from tests.capacity.crew import Crew, line, start
from tests.capacity.detour import Detour
from tests.capacity.server import Server
from tests.capacity.windows import amount, excess, most_at_once, share_used

BATCH, INTERACTIVE = Workload.BATCH, Workload.INTERACTIVE
PROCESSES = 4
BURST, RATE = 1_000, 59_000 / 60  # tokens, tokens a second
BATCH_SHARE = 0.8
HOUR = 3_600.0
# A tenth of the short one is 0.15 s, for which a busy machine may put all processes aside.
SHORT = pytest.param(1.5, 0.9, id="short")
LONG = pytest.param(60, 0.99, id="long", marks=pytest.mark.soak)


def of_class(events: Sequence[Event], workload: Workload) -> list[Event]:
    return [event for event in events if event[1] == workload]


async def test_places_of_a_killed_process_come_back_and_its_tokens_stay_charged(
    shared_server: Server, client: Redis
) -> None:
    pool.fill(client)
    process = start("hold", shared_server.url)
    assert await line(process) == "held\n"
    left = pool.level(client).tokens
    process.kill()
    killed = time.monotonic()
    process.wait()
    process.communicate()
    async with (
        bucket(shared_server.url, HOLD, lease=LEASE) as made,
        made.acquire(100, INTERACTIVE, killed + 5),
    ):
        assert time.monotonic() - killed < LEASE + 1
        assert pool.level(client).places == 1
    assert round(left / TOKEN) == 700


@pytest.mark.parametrize(("seconds", "used"), [SHORT, LONG])
async def test_no_window_holds_more_than_the_pool_grants_and_all_of_it_is_used(
    shared_server: Server, client: Redis, crew: Crew, seconds: float, used: float
) -> None:
    """Whatever the processes take for the time of day: they are hours apart."""
    pool.fill(client)
    plans = [
        Plan(
            shared_server.url,
            seconds=seconds,
            seed=seed,
            clock_ahead=(seed - 1) * HOUR,
            max_wait=seed % 2,
        )
        for seed in range(PROCESSES)
    ]
    events = await crew.run(plans)
    assert pool.level(client).places == 0
    batch = of_class(events, BATCH)
    assert excess(events, BURST, RATE) <= 0
    assert excess(batch, BATCH_SHARE * BURST, BATCH_SHARE * RATE) <= 0
    assert excess(events, 20, 2_980 / 60, kind="request") <= 0
    assert most_at_once(events) <= LOAD.in_flight
    assert most_at_once(batch) <= LOAD.in_flight * BATCH_SHARE
    # From the first asking to the last answer: a process may begin late on a busy machine.
    asked = max(event[4] for event in events) - min(event[3] for event in events)
    requests = amount(events, "request") / (20 + 2_980 / 60 * asked)
    assert max(share_used(events, BURST, RATE), requests) >= used


async def test_interactive_work_is_admitted_at_once_while_batch_saturates(
    shared_server: Server, client: Redis, crew: Crew
) -> None:
    """It takes a tenth of the rate, of which a fifth is kept for it."""
    pool.fill(client)
    limits = Limits(60_000, 61_000, 100, 50, 0.2, token_burst=1_000)
    plans = [
        Plan(shared_server.url, limits=limits, seconds=2.5, seed=seed, classes=["batch"])
        for seed in range(3)
    ]
    size, waits = 10, list[float]()
    await crew.begin(plans)
    async with bucket(shared_server.url, limits) as made:
        began = time.monotonic()
        while time.monotonic() < began + 2:
            asked = time.monotonic()
            async with made.reserve(size, INTERACTIVE, max_wait=1):
                waits.append(time.monotonic() - asked)
            await asyncio.sleep(size / 100)
    events = await crew.finish(plans)
    waits.sort()
    # Its own tokens are refilled in 10 ms; the rest is a round trip on a busy machine.
    assert waits[len(waits) // 2] <= 0.01 + 0.02
    assert share_used(events, 800, 800) >= 0.9


async def test_no_process_starts_an_attempt_in_a_cooldown(
    shared_server: Server, client: Redis, crew: Crew
) -> None:
    """Those that wait for their start do not either; then starts climb over the ramp.

    It comes when the burst is spent, and who asks has to wait.
    """
    pool.fill(client)
    cooldown, ramp = 0.5, 2.0
    limits = Limits(60_000, 61_000, 100, 50, 0, token_burst=1_000)
    one = Plan(
        shared_server.url, limits=limits, seconds=4, max_wait=0.3, bucket={"ramp_seconds": ramp}
    )
    plans = [replace(one, seed=seed) for seed in range(3)]
    await crew.begin(plans)
    async with bucket(shared_server.url, limits, ramp_seconds=ramp) as made:
        await until(lambda: pool.level(client).tokens < limits.max_reservation * TOKEN, 5)
        await made.cool_down(cooldown)
        told = time.monotonic()
    events = await crew.finish(plans)
    end = told + cooldown - 0.05
    assert not [e for e in events if e[0] == "request" and e[3] >= told and e[4] < end]
    assert not [e for e in events if e[0] == "request" and told + 0.2 < e[4] < end]
    after = [event for event in events if event[4] > end and event[3] > told]
    taken = amount([e for e in after if e[4] < end + ramp / 2], "charge")
    assert 0 < taken <= 1_000 * (ramp / 2 + 0.1) ** 2 / (2 * ramp)
    assert amount([e for e in after if e[4] >= end + ramp], "charge") > 0


@pytest.mark.soak
async def test_three_of_eight_processes_die_in_the_middle(
    shared_server: Server, client: Redis
) -> None:
    pool.fill(client)
    limits = Limits(600_000, 60_000_000, 6, 50, 0)
    plans = [
        Plan(shared_server.url, limits, seconds=20, seed=seed, bucket={"lease": 2})
        for seed in range(8)
    ]
    doomed, others = Crew(), Crew()
    await asyncio.gather(doomed.begin(plans[:3]), others.begin(plans[3:]))
    await until(lambda: pool.level(client).places == limits.in_flight, 20)
    doomed.end()
    killed = time.monotonic()
    events = await others.finish(plans[3:])
    others.end()
    assert most_at_once(events) <= limits.in_flight
    late = [e for e in events if e[0] == "place" and e[3] > killed + 3]
    assert most_at_once(late) == limits.in_flight
    assert pool.level(client).places == 0


SHARED = Limits(30_000, 600_000, 200, 50)
OPTIONS = {"decision_timeout": 0.1, "lease": 1.0, "local_share": 0.2, "max_processes": 4}
BACK_WITHIN = 2.0
BUSY = 1.0  # what a decision may take beside its own limit where four processes share two cores


async def flushed(server: Server, seconds: float) -> None:
    with Redis.from_url(server.url) as client:
        client.flushall()
    await asyncio.sleep(seconds)


async def without_scripts(server: Server, seconds: float) -> None:
    with Redis.from_url(server.url) as client:
        for _ in range(20):
            client.script_flush()
            await asyncio.sleep(seconds / 20)


async def killed(server: Server, seconds: float) -> None:
    server.kill()
    await asyncio.sleep(seconds)
    server.start()


async def stopped(server: Server, seconds: float) -> None:
    server.stop()
    await asyncio.sleep(seconds)
    server.go_on()


@pytest.mark.parametrize("outage", [flushed, without_scripts, killed, stopped])
@pytest.mark.parametrize(
    "length", [pytest.param(1.0, id="short"), pytest.param(30, id="long", marks=pytest.mark.soak)]
)
async def test_all_together_stay_within_the_limit_through_an_outage(
    own_server: Server,
    crew: Crew,
    outage: Callable[[Server, float], Awaitable[None]],
    length: float,
) -> None:
    seconds = 2 * length + BACK_WITHIN + 1
    plans = [
        Plan(
            own_server.url, limits=SHARED, seconds=seconds, seed=seed, max_wait=0.2, bucket=OPTIONS
        )
        for seed in range(PROCESSES)
    ]
    with Redis.from_url(own_server.url) as client:
        pool.fill(client)
    await crew.begin(plans)
    await asyncio.sleep(length / 2)
    await outage(own_server, length)
    back = time.monotonic()
    events = await crew.finish(plans)
    assert excess(events, *together(2)) <= 0
    assert excess(events, *together(0), kind="request") <= 0
    assert most_at_once(events) <= SHARED.in_flight
    shared = [event[3] for event in events if event[0] == "shared"]
    assert min(start for start in shared if start > back) < back + BACK_WITHIN
    refusals = [event[4] - event[3] for event in events if event[0] == "refusal"]
    assert max(refusals, default=0) < OPTIONS["decision_timeout"] + 0.2 + BUSY


def together(bucket: int) -> tuple[float, float]:
    """Burst and refill a second of the shared bucket and all local ones."""
    unit = TOKEN if bucket else REQUEST
    local = SHARED.local(0.2, PROCESSES)
    assert local is not None
    numbers = [SHARED.shared(0.2).numbers(), *[local.numbers()] * PROCESSES]
    size, rate = (sum(one[2 + bucket + part] for one in numbers) for part in (0, 1))
    assert size + rate * WINDOW <= (600_000 if bucket else 30_000) * unit
    return size / unit, rate * pool.SECOND / unit


async def test_the_limit_holds_when_some_processes_alone_lost_redis(
    own_server: Server, crew: Crew
) -> None:
    """Two reach Redis by another way, which ends."""
    seconds = 4.0
    with Redis.from_url(own_server.url) as client:
        pool.fill(client)
    plans = [
        Plan(own_server.url, limits=SHARED, seconds=seconds, seed=seed, bucket=OPTIONS)
        for seed in range(PROCESSES)
    ]
    side = own_server.folder / "side.sock"
    async with Detour(own_server.folder / "redis.sock", side) as detour:
        plans[:2] = [replace(plan, url=f"unix://{side}") for plan in plans[:2]]
        await crew.begin(plans)
        await asyncio.wait_for(detour.taken.wait(), 20)
        await detour.cut()
        events = await crew.finish(plans)
    assert excess(events, *together(2)) <= 0
    assert most_at_once(events) <= SHARED.in_flight
    assert amount(events, "local") > 0
    assert amount(events, "shared") > amount(events, "local")
