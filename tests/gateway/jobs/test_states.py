"""Whatever callers, workers and the clock do, in whatever order: each job ends once."""

import asyncio
import json
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from redis import Redis

from chassis.errors import Conflict, NotFound
from chassis.identity import AccessLevel, Caller
from gateway.jobs.job import FOLLOWING, Deferral, State
from gateway.jobs.leases import Attempt, Leases, Pace
from gateway.jobs.ledger import QUEUE, ROOT, Ledger, Terms
from gateway.store import Store
from tests.capacity.server import Server

LIFETIME, LEASE, ATTEMPTS = 3_600, 10, 3
OWNERS = [Caller(name, f"of {name}", AccessLevel.TEAM) for name in ("ana", "bo")]
TERMS = Terms(LIFETIME, kept=60, backlog=1_000, longest_wait=LIFETIME, starts_per_minute=60_000)


@dataclass
class Expected:
    owner: Caller
    accepted: float
    state: State = State.QUEUED
    attempts: int = 0
    fence: int = 0
    lease: float = 0
    not_before: float = 0
    successor: str = ""

    @property
    def open(self) -> bool:
        return not self.state.ended


class Jobs:
    """The scripts against a few lines of Python. `now` is a clock that the steps wind on."""

    def __init__(self, url: str, store: Store) -> None:
        self.redis: Any = Redis.from_url(url, decode_responses=True)
        self.redis.flushall()
        self.ledger = Ledger(store, TERMS)
        self.leases = Leases(store, Pace(LEASE, ATTEMPTS, 60_000, 1))
        self.now = 0.0
        self.jobs: dict[str, Expected] = {}
        self.begun: list[Attempt] = []
        self.keys: dict[tuple[str, str], tuple[str, tuple[str, str]]] = {}

    async def accept(self, number: int) -> None:
        owner, key = OWNERS[number % 2], ("", "k")[number // 2 % 2]
        await self.handed_in(owner, key, ("why", "how")[number // 4 % 2], "")

    async def supersede(self, number: int) -> None:
        owner, replaced = OWNERS[number % 2], self.some_job(number // 2)
        if replaced and self.jobs[replaced].owner == owner:
            successor = await self.handed_in(owner, "", "why", replaced)
            if self.jobs[replaced].open:
                self.jobs[replaced].state = State.SUPERSEDED
                self.jobs[replaced].successor = successor
        elif replaced:
            with pytest.raises(NotFound):
                await self.ledger.accept(owner, b"why", Deferral(supersedes=replaced))

    async def handed_in(self, owner: Caller, key: str, question: str, replaced: str) -> str:
        deferral = Deferral(key=key, supersedes=replaced)
        known = self.keys.get((owner.subject, key)) if key else None
        step = self.ledger.accept(owner, question.encode(), deferral)
        if known and known[1] != (question, replaced):
            with pytest.raises(Conflict):
                await step
            return ""
        job_id = await step
        if known:
            assert job_id == known[0]
            return job_id
        assert job_id not in self.jobs
        self.jobs[job_id] = Expected(owner, self.now)
        if key:
            self.keys[owner.subject, key] = (job_id, (question, replaced))
        return job_id

    async def take_the_next_entry(self, _: int) -> None:
        for name, fields in self.redis.xrange(QUEUE, count=1):
            await self.take(json.loads(fields["data"])["args"][0])
            self.redis.xdel(QUEUE, name)

    async def take_an_entry_twice(self, number: int) -> None:
        attempt = self.some_attempt(number)
        if attempt:
            await self.take(attempt.job_id)

    async def take(self, job_id: str) -> None:
        found: Attempt | float | None = 0.0
        while isinstance(found, float):
            found = await self.leases.begin(job_id)
        job = self.jobs[job_id]
        if job.state is not State.QUEUED or self.now < job.not_before:
            assert found is None
        elif job.attempts >= ATTEMPTS:
            assert found is None
            job.state = State.FAILED
        else:
            job.state, job.lease = State.RUNNING, self.now + LEASE
            job.attempts, job.fence = job.attempts + 1, job.fence + 1
            assert found
            assert found == Attempt(job_id, job.fence, job.attempts, job.owner, found.question)
            self.begun.append(found)

    async def renew(self, number: int) -> None:
        attempt = self.some_attempt(number)
        if attempt:
            counts = self.counts(attempt)
            assert await self.leases.renew(attempt) is counts
            if counts:
                self.jobs[attempt.job_id].lease = self.now + LEASE

    async def finish(self, number: int) -> None:
        attempt, state = self.some_attempt(number // 2), (State.DONE, State.FAILED)[number % 2]
        if attempt:
            counts, word = self.counts(attempt), str(attempt.fence).encode()
            assert await self.leases.finish(attempt, state, "", word) is counts
            if counts:
                self.jobs[attempt.job_id].state = state
                entry = await self.ledger.look(attempt.job_id, self.jobs[attempt.job_id].owner)
                assert entry
                assert entry.answer == word

    async def postpone(self, number: int) -> None:
        attempt, seconds = self.some_attempt(number // 2), (0, 60)[number % 2]
        if attempt:
            counts = self.counts(attempt)
            step = self.leases.postpone(attempt, seconds, "CAPACITY", outage=False)
            assert await step is counts
            if counts:
                job = self.jobs[attempt.job_id]
                job.state, job.not_before = State.QUEUED, self.now + seconds

    async def hand_back(self, number: int) -> None:
        attempt = self.some_attempt(number)
        if attempt:
            counts = self.counts(attempt)
            assert await self.leases.hand_back(attempt) is counts
            if counts:
                job = self.jobs[attempt.job_id]
                job.state, job.not_before = State.QUEUED, self.now
                job.attempts -= 1

    async def cancel(self, number: int) -> None:
        job_id, who = self.some_job(number // 2), OWNERS[number % 2]
        if job_id:
            job = self.jobs[job_id]
            found = await self.ledger.look(job_id, who, cancel=True)
            assert (found is not None) is (job.owner == who)
            if found and job.open:
                job.state = State.CANCELLED

    async def let_time_pass(self, number: int) -> None:
        seconds = (LEASE + 2, LEASE + 2, 61, LIFETIME / 2)[number % 4]
        self.wind(seconds)
        lost = 0
        for job in self.jobs.values():
            if job.open and self.now >= job.accepted + LIFETIME:
                job.state = State.EXPIRED
            elif job.state is State.RUNNING and self.now >= job.lease:
                lost += 1
                job.state = State.FAILED if job.attempts >= ATTEMPTS else State.QUEUED
        assert await self.leases.move_on() == lost

    def wind(self, seconds: float) -> None:
        self.now += seconds
        milliseconds = round(seconds * 1e3)
        for job_id in self.jobs:
            for name in ("accepted", "expires", "lease", "not_before"):
                if self.redis.hexists(f"{ROOT}job:{job_id}", name):
                    self.redis.hincrby(f"{ROOT}job:{job_id}", name, -milliseconds)
        for name in ("open", "due"):
            for job_id in self.redis.zrange(f"{ROOT}{name}", 0, -1):
                self.redis.zincrby(f"{ROOT}{name}", -milliseconds, job_id)

    def counts(self, attempt: Attempt) -> bool:
        job = self.jobs[attempt.job_id]
        return job.state is State.RUNNING and job.fence == attempt.fence

    def some_job(self, number: int) -> str:
        return [*self.jobs][number % len(self.jobs)] if self.jobs else ""

    def some_attempt(self, number: int) -> Attempt | None:
        """One of the last ones, most of which still count."""
        recent = self.begun[-3:]
        return recent[number % len(recent)] if recent else None

    def check(self) -> None:
        entries = [json.loads(one["data"])["args"][0] for _, one in self.redis.xrange(QUEUE)]
        due = self.redis.zrange(f"{ROOT}due", 0, -1)
        for job_id, job in self.jobs.items():
            kept = self.redis.hmget(f"{ROOT}job:{job_id}", "state", "attempts", "successor")
            assert kept == [job.state, str(job.attempts), job.successor]
            waits = job.state is State.QUEUED and self.now < job.not_before
            # What is to be done next is known to the queue or to the clock.
            assert not job.open or job_id in due
            assert job.state is not State.QUEUED or waits or job_id in entries
        still = {job_id for job_id, job in self.jobs.items() if job.open}
        assert still == set(self.redis.zrange(f"{ROOT}open", 0, -1))
        each = Counter(self.jobs[job_id].owner.tenant for job_id in still)
        assert sorted(map(int, self.redis.hvals(f"{ROOT}tenants"))) == sorted(each.values())


STEPS = [
    *(Jobs.accept, Jobs.supersede, Jobs.cancel, Jobs.let_time_pass, Jobs.let_time_pass),
    *(Jobs.take_the_next_entry, Jobs.take_the_next_entry, Jobs.take_an_entry_twice),
    *(Jobs.renew, Jobs.finish, Jobs.postpone, Jobs.hand_back),
]


async def tried(url: str, steps: list[tuple[int, int]]) -> None:
    store = Store.connect(url, 5)
    jobs = Jobs(url, store)
    try:
        for which, number in steps:
            before = {job_id: job.state for job_id, job in jobs.jobs.items()}
            await STEPS[which](jobs, number)
            jobs.check()
            for job_id, state in before.items():
                assert jobs.jobs[job_id].state in FOLLOWING[state] | {state}
    finally:
        jobs.redis.close()
        await store.close()


@pytest.mark.parametrize("examples", [25, pytest.param(2_000, marks=pytest.mark.soak)])
def test_every_job_ends_once_and_none_is_lost(redis_server: Server, examples: int) -> None:
    step = st.tuples(st.integers(0, len(STEPS) - 1), st.integers(0, 15))
    ended = 0

    @settings(max_examples=examples, deadline=None)
    @given(st.lists(step, min_size=20, max_size=50))
    def try_them(steps: list[tuple[int, int]]) -> None:
        nonlocal ended
        asyncio.run(tried(redis_server.url, steps))
        ended += 1

    try_them()
    assert ended >= examples
