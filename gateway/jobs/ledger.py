"""The jobs as callers reach them, in a Redis of their own: accepted, looked at, cancelled."""

import hashlib
import json
import uuid
from dataclasses import dataclass
from typing import Any

from chassis.errors import Conflict, Exhausted, NotFound, Unavailable
from chassis.identity import Caller, claims_of
from gateway.jobs import measures
from gateway.jobs.job import Deferral, State
from gateway.store import Store

ROOT = "sluice:{jobs}:"
QUEUE = f"{ROOT}queue"
# What one caller asks under one key elsewhere than here would be something else.
OPERATION = "answers"
MILLISECONDS = 1_000
# What makes a job durable once it is accepted.
DURABLE = {"appendonly": "yes", "appendfsync": "always", "maxmemory-policy": "noeviction"}


class BacklogFull(Exhausted):
    """As many jobs wait as can be answered in good time."""

    default_reason = "BACKLOG_FULL"


@dataclass(frozen=True, slots=True)
class Terms:
    """On which jobs are accepted. Times in seconds.

    A job expires after `lifetime` and is `kept` once it has ended. At most `backlog` may be open,
    half of them of one tenant, and none is accepted that would wait longer than `longest_wait`, at
    `starts_per_minute`.
    """

    lifetime: float
    kept: float
    backlog: int
    longest_wait: float
    starts_per_minute: float


@dataclass(frozen=True, slots=True)
class Entry:
    """A job as it is written down. `question` and `answer` are the wire's."""

    state: State
    accepted: float
    expires: float
    attempts: int
    reason: str
    superseded_by: str
    question: bytes
    answer: bytes | None


class Ledger:
    """Raises StoreLost whenever Redis does not answer in time."""

    def __init__(self, store: Store, terms: Terms) -> None:
        self._store = store
        self._terms = terms

    async def close(self) -> None:
        await self._store.close()

    async def accept(self, caller: Caller, question: bytes, deferral: Deferral) -> str:
        """The id of the job, which no process can lose any more.

        Under the same key the same question gives the same job. Raises Conflict for another
        question under the same key, BacklogFull, and NotFound for what is to be superseded.
        """
        terms = self._terms
        code, *accepted = await self._run(
            "accept",
            uuid.uuid4().hex,
            *_identity(caller),
            _key(caller, deferral.key) if deferral.key else "",
            _digest(question.hex(), deferral.supersedes),
            question,
            round(terms.lifetime * MILLISECONDS),
            round(terms.kept * MILLISECONDS),
            terms.backlog,
            round(terms.longest_wait * MILLISECONDS),
            round(60 * MILLISECONDS / terms.starts_per_minute),
            deferral.supersedes,
            _digest(caller.tenant),
            max(1, terms.backlog // 2),
        )
        if code:
            raise _refusal(code)
        return str(accepted[0].decode())

    async def look(self, job_id: str, caller: Caller, *, cancel: bool = False) -> Entry | None:
        """The caller's job, after it was ended if `cancel`. None if they have none of this id."""
        rights = round(self._terms.lifetime * MILLISECONDS)
        found = await self._run("look", job_id, *_identity(caller), rights, int(cancel))
        if not found:
            return None
        state, accepted, expires, attempts, reason, successor, question, answer = found
        return Entry(
            State(state.decode()),
            int(accepted) / MILLISECONDS,
            int(expires) / MILLISECONDS,
            int(attempts),
            reason.decode(),
            successor.decode(),
            question,
            answer,
        )

    async def check(self) -> None:
        """Raises Unavailable unless jobs can be accepted and kept. Measures the backlog."""
        told = await self._store.configured(*DURABLE)
        wrong = [name for name, value in told.items() if value != DURABLE[name]]
        if wrong:
            wanted = ", ".join(f"{name} {DURABLE[name]}" for name in wrong)
            raise Unavailable(f"the Redis of the jobs would lose some: it needs {wanted}")
        number, oldest = await self._run("backlog")
        measures.backlog(number, oldest / MILLISECONDS)

    async def _run(self, script: str, *arguments: str | int | bytes) -> list[Any]:
        return await self._store.run(f"jobs/{script}", [ROOT], *arguments)


def _identity(caller: Caller) -> tuple[str, str]:
    """Whose job it is, by a name that says nothing, and their rights."""
    return _digest(caller.tenant, caller.subject), json.dumps(claims_of(caller))


def _key(caller: Caller, key: str) -> str:
    return _digest(caller.tenant, caller.subject, OPERATION, key)


def _digest(*parts: str) -> str:
    whole = json.dumps(parts).encode()
    return hashlib.blake2b(whole, digest_size=16).hexdigest()


def _refusal(code: int) -> Exception:
    match code:
        case 1:
            return Conflict("this idempotency key stands for another question", reason="KEY_IN_USE")
        case 4:
            return NotFound("there is no such job to take the place of", reason="NO_SUCH_JOB")
    return BacklogFull("too many questions wait for an answer; try again later")
