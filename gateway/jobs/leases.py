"""The jobs as workers move them on. An attempt's word counts only while its fence is the last."""

import json
from dataclasses import dataclass
from typing import Any

from chassis.errors import Unauthenticated
from chassis.identity import Caller, caller_of
from gateway.jobs.job import State, narrowed
from gateway.jobs.ledger import MILLISECONDS, ROOT
from gateway.store import Argument, Store

# Jobs that one look at the clock moves on.
LOOKED_AT = 100


@dataclass(frozen=True, slots=True)
class Pace:
    """How attempts are begun, by all workers together. Times in seconds.

    A lease that is not renewed for `lease` is lost. After an outage, in which at most every
    `longest_pause` one attempt tries, `starts_per_minute` are reached again over `ramp`.
    """

    lease: float
    attempts: int
    starts_per_minute: float
    ramp: float
    longest_pause: float = 30.0


@dataclass(frozen=True, slots=True)
class Attempt:
    """One that was begun. `caller` is None where nobody has vouched for the rights lately."""

    job_id: str
    fence: int
    number: int
    caller: Caller | None
    question: bytes


class Leases:
    """Raises StoreLost whenever Redis does not answer in time."""

    def __init__(self, store: Store, pace: Pace) -> None:
        self.pace = pace
        self._store = store

    async def begin(self, job_id: str) -> Attempt | float | None:
        """An attempt, the seconds until one may begin, or None if the job waits for none."""
        pace = self.pace
        code, *told = await self._run(
            "begin",
            job_id,
            _milliseconds(pace.lease),
            pace.attempts,
            _milliseconds(60 / pace.starts_per_minute),
            _milliseconds(pace.ramp),
        )
        if code == 0:
            return None
        if code == 1:
            return float(told[0]) / MILLISECONDS
        fence, number, accepted, seen, question = told
        return Attempt(job_id, fence, number, _rights(accepted, seen), question)

    async def renew(self, attempt: Attempt) -> bool:
        """Whether the attempt is still the one that counts."""
        lease = _milliseconds(self.pace.lease)
        return await self._counts("renew", attempt.job_id, attempt.fence, lease)

    async def finish(
        self, attempt: Attempt, state: State, reason: str = "", answer: bytes = b""
    ) -> bool:
        """End the job, if the attempt still counts."""
        return await self._counts(
            "finish", attempt.job_id, attempt.fence, state.value, reason, answer
        )

    async def postpone(
        self, attempt: Attempt, seconds: float, reason: str, *, outage: bool
    ) -> bool:
        """Let the job wait for its next attempt, and all jobs for a while after an outage."""
        longest = _milliseconds(self.pace.longest_pause) if outage else 0
        return await self._counts(
            "postpone", attempt.job_id, attempt.fence, _milliseconds(seconds), reason, longest, 0
        )

    async def hand_back(self, attempt: Attempt) -> bool:
        """Let another worker begin at once: this attempt is none."""
        return await self._counts("postpone", attempt.job_id, attempt.fence, 0, "", 0, 1)

    async def move_on(self) -> int:
        """Do what is due by the clock, for some of the jobs. How many a worker was lost with."""
        due = await self._run("due", LOOKED_AT)
        lost = 0
        for job_id in due:
            (one,) = await self._run("lapse", job_id, self.pace.attempts)
            lost += one
        return lost

    async def check(self) -> None:
        await self._run("due", 0)

    async def _counts(self, script: str, *arguments: Argument) -> bool:
        return bool((await self._run(script, *arguments))[0])

    async def _run(self, script: str, *arguments: Argument) -> list[Any]:
        return await self._store.run(f"jobs/{script}", [ROOT], *arguments)


def _milliseconds(seconds: float) -> int:
    return round(seconds * MILLISECONDS)


def _rights(accepted: bytes, seen: bytes | None) -> Caller | None:
    if seen is None:
        return None
    try:
        return narrowed(caller_of(json.loads(accepted)), caller_of(json.loads(seen)))
    except Unauthenticated:
        # Written by another version, whose levels are not ours.
        return None
