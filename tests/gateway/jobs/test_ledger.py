"""What the ledger refuses, how attempts are paced, and what the queue library reads."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import pytest_asyncio
from redis import Redis
from taskiq.formatters.json_formatter import JSONFormatter
from taskiq.message import TaskiqMessage

from chassis.errors import InvalidInput, Unavailable
from chassis.identity import AccessLevel, Caller
from gateway.jobs.job import FOLLOWING, Deferral, State, narrowed
from gateway.jobs.leases import Attempt, Leases, Pace
from gateway.jobs.ledger import QUEUE, ROOT, BacklogFull, Ledger, Terms
from gateway.store import Store
from gateway.worker.queue import TASK
from tests.capacity.server import Server
from tests.gateway.jobs.shop import vault
from tests.measured import values

Client: TypeAlias = Any  # its types know both of the client's dialects

ANA = Caller("ana", "acme", AccessLevel.TEAM, frozenset({"sre", "dba"}), frozenset({"editor"}))
TERMS = Terms(3_600, kept=60, backlog=6, longest_wait=600, starts_per_minute=60)
PACE = Pace(10, attempts=5, starts_per_minute=60, ramp=60)


@pytest_asyncio.fixture
async def store(redis: "Redis", redis_server: Server) -> AsyncIterator[Store]:
    opened = Store.connect(redis_server.url, 5)
    yield opened
    await opened.close()


async def accepted(store: Store, terms: Terms = TERMS, caller: Caller = ANA) -> str:
    return await Ledger(store, terms).accept(caller, b"why", Deferral())


async def test_the_backlog_is_bounded_by_number(store: Store, redis: Client) -> None:
    callers = [replace(ANA, tenant=f"tenant {number}") for number in range(6)]
    first, *_ = [await accepted(store, caller=caller) for caller in callers]
    with pytest.raises(BacklogFull):
        await accepted(store)
    assert len(redis.keys(f"{ROOT}job:*")) == 6
    await Ledger(store, TERMS).look(first, callers[0], cancel=True)
    assert await accepted(store)


async def test_one_tenant_fills_no_more_than_half_of_the_backlog(store: Store) -> None:
    bo, ella = replace(ANA, subject="bo"), replace(ANA, tenant="other")
    first, *_ = [await accepted(store, caller=caller) for caller in (ANA, bo, ANA)]
    for caller in (ANA, bo):
        with pytest.raises(BacklogFull):
            await accepted(store, caller=caller)
    assert await accepted(store, caller=ella)
    await Ledger(store, TERMS).look(first, ANA, cancel=True)
    assert await accepted(store, caller=bo)


async def test_the_backlog_is_bounded_by_how_long_the_oldest_has_waited(
    store: Store, redis: Client
) -> None:
    first = await accepted(store)
    redis.zincrby(f"{ROOT}open", -601_000, first)
    with pytest.raises(BacklogFull):
        await accepted(store)


async def test_the_backlog_is_bounded_by_what_the_pace_allows(store: Store) -> None:
    slow = replace(TERMS, backlog=1_000, starts_per_minute=0.15)
    assert [await accepted(store, slow) for _ in range(2)]
    with pytest.raises(BacklogFull):
        await accepted(store, slow)


async def test_an_entry_is_as_the_library_writes_it(store: Store, redis: Client) -> None:
    job_id = await accepted(store)
    ((_, fields),) = redis.xrange(QUEUE)
    message = TaskiqMessage(task_id=job_id, task_name=TASK, labels={}, args=[job_id], kwargs={})
    formatter = JSONFormatter()
    assert formatter.loads(fields[b"data"]) == message
    assert fields[b"data"] == formatter.dumps(message).message


async def test_no_bearer_is_kept_and_rights_only_until_the_end(store: Store, redis: Client) -> None:
    job_id = await accepted(store)
    kept = redis.hgetall(f"{ROOT}job:{job_id}")
    assert json.loads(kept[b"rights"])["sub"] == "ana"
    assert not any(b"eyJ" in value for value in kept.values())
    await Ledger(store, TERMS).look(job_id, ANA, cancel=True)
    ended = redis.hgetall(f"{ROOT}job:{job_id}")
    assert not any(b"ana" in value for value in ended.values())
    assert 0 < redis.ttl(f"{ROOT}job:{job_id}") <= 60


async def test_attempts_begin_at_the_pace_and_after_an_outage_slower(
    store: Store, redis: Client
) -> None:
    leases = Leases(store, PACE)
    jobs = [await accepted(store) for _ in range(3)]
    first = await leases.begin(jobs[0])
    assert isinstance(first, Attempt)
    wait = await leases.begin(jobs[1])
    assert isinstance(wait, float)
    assert 0.5 < wait <= 1
    assert await leases.postpone(first, 60, "MODEL_UNAVAILABLE", outage=True)
    redis.hdel(f"{ROOT}pace", "next")
    stopped = await leases.begin(jobs[1])
    assert isinstance(stopped, float)
    assert 0 < stopped <= 1
    now = int(redis.time()[0] * 1e3)
    redis.hset(f"{ROOT}pace", "outage", now - 1_000)
    probe = await leases.begin(jobs[1])
    assert isinstance(probe, Attempt)
    slow = await leases.begin(jobs[2])
    assert isinstance(slow, float)
    assert 8 < slow <= 10
    redis.hset(f"{ROOT}pace", mapping={"outage": now - 61_000, "next": 0})
    assert isinstance(await leases.begin(jobs[2]), Attempt)


async def test_the_pause_in_an_outage_grows_to_a_bound(store: Store, redis: Client) -> None:
    leases = Leases(store, PACE)
    job_id = await accepted(store)
    pauses = []
    for _ in range(5):
        redis.hset(f"{ROOT}pace", mapping={"outage": 0, "next": 0})
        attempt = await leases.begin(job_id)
        assert isinstance(attempt, Attempt)
        assert await leases.postpone(attempt, 0, "CAPACITY", outage=True)
        left = int(redis.hget(f"{ROOT}pace", "outage")) - redis.time()[0] * 1e3
        pauses.append(left / 1e3)
        redis.hset(f"{ROOT}job:{job_id}", "attempts", 0)
    assert [round(pause) for pause in pauses][-1] in range(7, 10)
    assert pauses == sorted(pauses)
    assert max(pauses) <= PACE.longest_pause + 1


def test_a_job_has_the_rights_that_both_tokens_give() -> None:
    seen = Caller("ana", "acme", AccessLevel.RESTRICTED, frozenset({"dba", "law"}))
    assert narrowed(ANA, seen) == Caller("ana", "acme", AccessLevel.TEAM, frozenset({"dba"}))


async def test_an_owner_of_whom_nothing_is_known_any_more_has_no_rights(
    store: Store, redis: Client
) -> None:
    job_id = await accepted(store)
    redis.delete(*redis.keys(f"{ROOT}rights:*"))
    attempt = await Leases(store, PACE).begin(job_id)
    assert isinstance(attempt, Attempt)
    assert attempt.caller is None


async def test_names_that_are_no_text_are_names_too(store: Store) -> None:
    odd = Caller("\ud800", "\n:{}", AccessLevel.TEAM)
    ledger = Ledger(store, TERMS)
    job_id = await ledger.accept(odd, b"why", Deferral(key="k"))
    assert await ledger.look(job_id, odd)
    assert await ledger.look(job_id, ANA) is None


async def test_a_redis_that_would_lose_jobs_is_told_of_and_the_oldest_job_measured(
    store: Store, tmp_path: Path
) -> None:
    values()  # from now on it is collected
    with pytest.raises(Unavailable, match="appendonly yes"):
        await Ledger(store, TERMS).check()
    async with vault(tmp_path / "redis") as kept:
        lasting = Store.connect(kept.url, 5)
        ledger = Ledger(lasting, TERMS)
        await ledger.check()
        assert await accepted(lasting)
        with kept.client() as client:
            (oldest,) = client.zrange(f"{ROOT}open", 0, -1)
            client.zincrby(f"{ROOT}open", -30_000, oldest)
        await ledger.check()
        await lasting.close()
    told = values()
    assert told["sluice.jobs.open"] == 1
    assert 30 <= told["sluice.jobs.oldest_age"] < 60


async def test_looking_again_with_the_same_rights_writes_nothing(
    store: Store, redis: Client
) -> None:
    ledger = Ledger(store, TERMS)
    job_id = await accepted(store)

    async def writes() -> bool:
        before = redis.info("persistence")["rdb_changes_since_last_save"]
        assert await ledger.look(job_id, ANA)
        return bool(redis.info("persistence")["rdb_changes_since_last_save"] > before)

    assert not await writes()
    redis.pexpire(redis.keys(f"{ROOT}rights:*")[0], 1_000_000)
    assert await writes()


@pytest.mark.parametrize(
    "wrong", [{"key": "a b"}, {"key": "k" * 256}, {"supersedes": "x"}, {"wait": -1.0}]
)
def test_a_deferral_that_cannot_be_met_names_its_field(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput) as refused:
        Deferral(**wrong)
    assert refused.value.field


def test_what_has_ended_has_nothing_to_follow() -> None:
    assert {state for state in State if not FOLLOWING[state]} == {
        *(State.DONE, State.FAILED, State.EXPIRED, State.CANCELLED, State.SUPERSEDED)
    }
