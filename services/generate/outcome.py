"""A verdict as the contract's outcome. One entry a verdict: nothing else can be written."""

from services.generate.result import Verdict
from sluice.answer.v1 import outcome_pb2 as pb


def outcome(verdict: Verdict) -> pb.Outcome:
    return _OUTCOMES[verdict]


def _generated(acceptance: pb.Acceptance.ValueType) -> pb.Outcome:
    return pb.Outcome(generated=pb.Generated(acceptance=acceptance))


def _abstained(reason: pb.AbstainedReason.ValueType) -> pb.Outcome:
    return pb.Outcome(abstained=pb.Abstained(reason=reason))


def _unavailable(reason: pb.UnavailableReason.ValueType) -> pb.Outcome:
    return pb.Outcome(unavailable=pb.Unavailable(reason=reason))


_OUTCOMES = {
    Verdict.EXTRACTIVE: pb.Outcome(extractive=pb.Extractive(reason=pb.EXTRACTIVE_REASON_NONE)),
    Verdict.ACCEPTED: _generated(pb.ACCEPTANCE_ACCEPTED),
    Verdict.REVIEW_REQUIRED: _generated(pb.ACCEPTANCE_REVIEW_REQUIRED),
    Verdict.NOTHING_FOUND: _abstained(pb.ABSTAINED_REASON_NOTHING_FOUND),
    Verdict.INSUFFICIENT: _abstained(pb.ABSTAINED_REASON_EVIDENCE_INSUFFICIENT),
    Verdict.MODEL_UNAVAILABLE: _unavailable(pb.UNAVAILABLE_REASON_MODEL_UNAVAILABLE),
    Verdict.CAPACITY: _unavailable(pb.UNAVAILABLE_REASON_CAPACITY),
    Verdict.INVALID_OUTPUT: _unavailable(pb.UNAVAILABLE_REASON_INVALID_OUTPUT),
    Verdict.REFUSED: _unavailable(pb.UNAVAILABLE_REASON_REFUSED),
    Verdict.DEADLINE: _unavailable(pb.UNAVAILABLE_REASON_DEADLINE),
}
