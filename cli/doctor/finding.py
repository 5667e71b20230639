"""What a check came to."""

from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """Only a problem makes the exit code 1."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    """`mend` says what to do; empty where nothing is."""

    part: str
    state: State
    said: str
    mend: str = ""


def ok(part: str, said: str) -> Finding:
    return Finding(part, State.OK, said)


def warning(part: str, said: str, mend: str) -> Finding:
    return Finding(part, State.WARNING, said, mend)


def problem(part: str, said: str, mend: str) -> Finding:
    return Finding(part, State.PROBLEM, said, mend)
