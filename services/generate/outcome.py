"""What this stage decides in the contract's words. Names are the same, so none can be missing."""

from typing import assert_never

from google.protobuf.duration_pb2 import Duration

from services.generate.audience import Withdrawal
from services.generate.result import Provenance, Switch
from services.generate.verdict import (
    Abstained,
    Acceptance,
    Extractive,
    Generated,
    Previous,
    Unavailable,
    Verdict,
)
from sluice.answer.v1 import outcome_pb2 as pb


def outcome(verdict: Verdict) -> pb.Outcome:
    match verdict:
        case Generated():
            return pb.Outcome(generated=pb.Generated(acceptance=_acceptance(verdict.acceptance)))
        case Extractive():
            extracted = pb.ExtractiveReason.Value(f"EXTRACTIVE_REASON_{verdict.reason.name}")
            return pb.Outcome(extractive=pb.Extractive(reason=extracted))
        case Previous():
            return pb.Outcome(previous=_previous(verdict))
        case Abstained():
            abstained = pb.AbstainedReason.Value(f"ABSTAINED_REASON_{verdict.reason.name}")
            return pb.Outcome(abstained=pb.Abstained(reason=abstained))
        case Unavailable():
            missing = pb.UnavailableReason.Value(f"UNAVAILABLE_REASON_{verdict.reason.name}")
            return pb.Outcome(unavailable=pb.Unavailable(reason=missing))
    assert_never(verdict)


def provenance(found: Provenance) -> pb.Provenance:
    return pb.Provenance(
        candidate=found.candidate,
        switch_reason=_switch(found.switch),
        schema_constrained=found.is_structured,
        repaired=found.is_repaired,
        cached_age=None if found.cached_age is None else _duration(found.cached_age),
    )


def retraction(reason: Withdrawal) -> pb.Retraction:
    return pb.Retraction(reason=pb.RetractionReason.Value(f"RETRACTION_REASON_{reason.name}"))


def _previous(verdict: Previous) -> pb.Previous:
    return pb.Previous(
        reason=pb.PreviousReason.Value(f"PREVIOUS_REASON_{verdict.reason.name}"),
        acceptance=_acceptance(verdict.acceptance),
        age=_duration(verdict.age),
    )


def _acceptance(acceptance: Acceptance) -> pb.Acceptance.ValueType:
    return pb.Acceptance.Value(f"ACCEPTANCE_{acceptance.name}")


def _switch(switch: Switch | None) -> pb.SwitchReason.ValueType:
    if switch is None:
        return pb.SWITCH_REASON_UNSPECIFIED
    return pb.SwitchReason.Value(f"SWITCH_REASON_{switch.name}")


def _duration(seconds: float) -> Duration:
    whole = Duration()
    whole.FromNanoseconds(round(seconds * 1e9))
    return whole
