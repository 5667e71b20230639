"""What a job is: its states, what may follow on each, and with whose rights it is answered."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic

from chassis.errors import InvalidInput
from chassis.identity import Caller
from gateway.answer import Answer, S
from gateway.outcome import Mode, Outcome, Reason

KEY_CHARACTERS = 255

_ID = re.compile(r"[0-9a-f]{32}")
_KEY = re.compile(r"[!-~]*")


class State(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    SUPERSEDED = "superseded"

    @property
    def ended(self) -> bool:
        return not FOLLOWING[self]


_BY_OTHERS = frozenset({State.EXPIRED, State.CANCELLED, State.SUPERSEDED})
# What may follow on each state; what has ended stays as it is.
FOLLOWING: Mapping[State, frozenset[State]] = {
    State.QUEUED: _BY_OTHERS | {State.RUNNING, State.FAILED},
    State.RUNNING: _BY_OTHERS | {State.QUEUED, State.DONE, State.FAILED},
    State.DONE: frozenset(),
    State.FAILED: frozenset(),
    State.EXPIRED: frozenset(),
    State.CANCELLED: frozenset(),
    State.SUPERSEDED: frozenset(),
}

# Reasons that another attempt may do away with, and those of them that others meet as well.
PASSING = frozenset(
    {Reason.MODEL_UNAVAILABLE, Reason.CAPACITY, Reason.RETRIEVAL_UNAVAILABLE, Reason.DEADLINE}
)
OUTAGES = PASSING - {Reason.DEADLINE}


@dataclass(frozen=True, slots=True)
class Deferral:
    """A caller's consent to an answer later. Raises InvalidInput that names the field.

    `wait` is how many seconds to try for one first, `supersedes` the id of an earlier job.
    """

    wait: float | None = None
    key: str = ""
    supersedes: str = ""

    def __post_init__(self) -> None:
        if len(self.key) > KEY_CHARACTERS or not _KEY.fullmatch(self.key):
            raise InvalidInput(
                f"1 to {KEY_CHARACTERS} visible ASCII characters", field="Idempotency-Key"
            )
        if self.supersedes and not is_id(self.supersedes):
            raise InvalidInput("this is no job's id", field="supersedes")
        if self.wait is not None and not self.wait >= 0:
            raise InvalidInput("the wait is 0 seconds or more", field="wait")


@dataclass(frozen=True, slots=True)
class Job(Generic[S]):
    """A job as its caller may see it. Times in seconds since 1970.

    `reason` is why it failed, or the last attempt did; `answer` what came of it.
    """

    id: str
    state: State
    accepted: float
    expires: float
    attempts: int
    reason: str
    superseded_by: str
    answer: Answer[S] | None


def is_id(text: str) -> bool:
    return bool(_ID.fullmatch(text))


def ending_of(outcome: Outcome) -> State:
    """How a job ends whose last attempt came to this."""
    return State.FAILED if outcome.mode is Mode.UNAVAILABLE else State.DONE


def narrowed(accepted: Caller, seen: Caller) -> Caller:
    """The subject with the rights that both have: a job never has more than it was asked with."""
    return Caller(
        accepted.subject,
        accepted.tenant,
        min(accepted.level, seen.level),
        accepted.groups & seen.groups,
        accepted.roles & seen.roles,
    )
