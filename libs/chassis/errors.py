"""The errors that cross layers. Transports turn them into status codes, nobody else does.

SluiceError
├── InvalidInput          the caller sent something that can never work
├── Unauthenticated       no token, or one that does not hold
├── Forbidden             a good token without the right
├── NotFound              the named thing is not there
├── Conflict              somebody else changed it meanwhile
├── ContractMismatch      two parts were set up for different contracts
├── Exhausted             an allowance or a room is used up
├── Unavailable           a part that is needed does not answer
├── DeadlineExceeded      the caller's time is over
├── DataViolation         stored data breaks its own contract
└── Internal              our bug
"""

from collections.abc import Mapping


class SluiceError(Exception):
    """An error whose message may be shown to the caller.

    `reason` is a stable UPPER_SNAKE_CASE word for programs, `retry_after` the seconds after which
    trying again can help (None: not known), `metadata` short facts about the error. None of them
    holds a secret, a driver's text or a passage.
    """

    default_reason = "INTERNAL"

    def __init__(
        self,
        message: str,
        *,
        reason: str = "",
        retry_after: float | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.reason = reason or self.default_reason
        self.retry_after = retry_after
        self.metadata = dict(metadata or {})


class InvalidInput(SluiceError):
    """`field` names the offending field as the caller wrote it."""

    default_reason = "INVALID_INPUT"

    def __init__(
        self,
        message: str,
        *,
        field: str,
        reason: str = "",
        metadata: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message, reason=reason, metadata=metadata)
        self.field = field


class Unauthenticated(SluiceError):
    default_reason = "UNAUTHENTICATED"


class Forbidden(SluiceError):
    default_reason = "FORBIDDEN"


class NotFound(SluiceError):
    default_reason = "NOT_FOUND"


class Conflict(SluiceError):
    default_reason = "CONFLICT"


class ContractMismatch(SluiceError):
    default_reason = "CONTRACT_MISMATCH"


class Exhausted(SluiceError):
    default_reason = "EXHAUSTED"


class Unavailable(SluiceError):
    default_reason = "UNAVAILABLE"


class DeadlineExceeded(SluiceError):
    default_reason = "DEADLINE_EXCEEDED"


class DataViolation(SluiceError):
    default_reason = "DATA_VIOLATION"


class Internal(SluiceError):
    default_reason = "INTERNAL"
