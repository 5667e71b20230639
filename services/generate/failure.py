"""What a failure on the way to an answer means for whoever asked."""

import structlog

from capacity import CapacityCircuitOpen, CapacityTooLarge, CapacityUnavailable
from chassis.errors import ContractMismatch, DeadlineExceeded, Exhausted, SluiceError
from providers.failures import Refused
from services.generate.audience import Withdrawal
from services.generate.contract import InvalidOutput
from services.generate.verdict import UnavailableReason

log = structlog.get_logger()

# The first entry that fits decides. What operators have to mend is an outage to callers.
REASONS: tuple[tuple[type[SluiceError], UnavailableReason], ...] = (
    (Refused, UnavailableReason.REFUSED),
    (InvalidOutput, UnavailableReason.INVALID_OUTPUT),
    (CapacityCircuitOpen, UnavailableReason.MODEL_UNAVAILABLE),
    (Exhausted, UnavailableReason.CAPACITY),
    (CapacityUnavailable, UnavailableReason.CAPACITY),
    (DeadlineExceeded, UnavailableReason.DEADLINE),
    (SluiceError, UnavailableReason.MODEL_UNAVAILABLE),
)
_OPERATORS_MEND = (ContractMismatch, CapacityTooLarge)
_WITHDRAWALS = {
    UnavailableReason.INVALID_OUTPUT: Withdrawal.INVALID_OUTPUT,
    UnavailableReason.REFUSED: Withdrawal.REFUSED,
    UnavailableReason.DEADLINE: Withdrawal.DEADLINE,
}


class NoCandidate(ContractMismatch):
    """No configured model may answer this question."""

    default_reason = "NO_CANDIDATE"


class BudgetSpent(Exhausted):
    """Not even one call fits what the question may cost."""

    default_reason = "BUDGET_SPENT"


def reason_of(failure: SluiceError) -> UnavailableReason:
    return next(reason for kind, reason in REASONS if isinstance(failure, kind))


def withdrawal_of(failure: SluiceError) -> Withdrawal:
    return _WITHDRAWALS.get(reason_of(failure), Withdrawal.INTERRUPTED)


def tell(failure: SluiceError) -> None:
    level = log.error if isinstance(failure, _OPERATORS_MEND) else log.warning
    level(
        "answer_failed",
        outcome=reason_of(failure).name,
        reason=failure.reason,
        problem=failure.message,
    )
