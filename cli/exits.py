"""Exit codes of every command, and which error means which."""

from chassis import errors
from local.failures import LocalFailure, Refused

OK = 0
INCOMPLETE = 1
USAGE = 2
UNREACHABLE = 3
NOT_ALLOWED = 4
INTERRUPTED = 130

MEANINGS = {
    OK: "done",
    INCOMPLETE: "some documents were refused, a part or a job is not ready, or the work failed",
    USAGE: "wrong usage, input or settings",
    UNREACHABLE: "nothing answers, or not in time",
    NOT_ALLOWED: "the identity is not accepted or lacks the right",
}

_CODES: dict[type[Exception], int] = {
    errors.InvalidInput: USAGE,
    errors.Unauthenticated: NOT_ALLOWED,
    errors.Forbidden: NOT_ALLOWED,
    errors.Unavailable: UNREACHABLE,
    errors.DeadlineExceeded: UNREACHABLE,
    Refused: USAGE,
}

Failure = errors.SluiceError | LocalFailure


class Unreachable(errors.Unavailable):
    """Nothing listens at an address."""

    def __init__(self, address: str) -> None:
        super().__init__(
            f"nothing answers at {address}: start the suite with `sluice up`", reason="UNREACHABLE"
        )


def nobody_there(error: errors.SluiceError) -> bool:
    """Whether nothing listens, rather than somebody who is not trusted."""
    return error.reason == "STAGE_UNAVAILABLE" and not getattr(error, "__notes__", ())


def code_of(failure: Exception) -> int:
    """The exit code for an error."""
    for kind in type(failure).__mro__:
        if kind in _CODES:
            return _CODES[kind]
    return INCOMPLETE


def reference() -> str:
    """The codes for a help text."""
    return "Exit codes: " + "; ".join(f"{code} {meaning}" for code, meaning in MEANINGS.items())
