import pytest

from services.generate.audience import Withdrawal
from services.generate.outcome import outcome, provenance, retraction
from services.generate.result import Provenance, Switch
from services.generate.verdict import (
    Abstained,
    AbstainedReason,
    Acceptance,
    Extractive,
    ExtractiveReason,
    Generated,
    Previous,
    PreviousReason,
    Unavailable,
    UnavailableReason,
    Verdict,
)
from sluice.answer.v1 import outcome_pb2 as pb

# The rows of the design's table; what the gateway alone decides is not among them.
TABLE: list[Verdict] = [
    *(Generated(acceptance) for acceptance in Acceptance),
    *(Extractive(reason) for reason in ExtractiveReason),
    *(Previous(reason, acceptance, 1.5) for reason in PreviousReason for acceptance in Acceptance),
    *(Abstained(reason) for reason in AbstainedReason),
    *(Unavailable(reason) for reason in UnavailableReason),
]
GATEWAYS = {"UNAVAILABLE_REASON_RETRIEVAL_UNAVAILABLE"}


def test_every_verdict_has_its_own_outcome() -> None:
    written = {outcome(verdict).SerializeToString() for verdict in TABLE}
    assert len(written) == len(TABLE) == 18


@pytest.mark.parametrize("verdict", TABLE)
def test_an_outcome_says_mode_and_reason_by_the_same_names(verdict: Verdict) -> None:
    said = outcome(verdict)
    mode = said.WhichOneof("mode")
    assert mode == type(verdict).__name__.lower()
    detail = getattr(said, mode)
    if not isinstance(verdict, Generated):
        kind = detail.DESCRIPTOR.fields_by_name["reason"].enum_type
        assert kind.values_by_number[detail.reason].name.endswith(f"_{verdict.reason.name}")
    if isinstance(verdict, Generated | Previous):
        assert pb.Acceptance.Name(detail.acceptance) == f"ACCEPTANCE_{verdict.acceptance.name}"


def test_an_earlier_answer_tells_its_age() -> None:
    said = outcome(Previous(PreviousReason.CAPACITY, Acceptance.ACCEPTED, 90.25)).previous
    assert said.age.ToNanoseconds() == 90_250_000_000


@pytest.mark.parametrize(
    ("ours", "theirs", "prefix"),
    [
        (ExtractiveReason, pb.ExtractiveReason, "EXTRACTIVE_REASON"),
        (PreviousReason, pb.PreviousReason, "PREVIOUS_REASON"),
        (AbstainedReason, pb.AbstainedReason, "ABSTAINED_REASON"),
        (UnavailableReason, pb.UnavailableReason, "UNAVAILABLE_REASON"),
        (Acceptance, pb.Acceptance, "ACCEPTANCE"),
        (Switch, pb.SwitchReason, "SWITCH_REASON"),
    ],
)
def test_nothing_of_the_contract_is_left_out(ours: type, theirs: type, prefix: str) -> None:
    names = {f"{prefix}_{member.name}" for member in ours}  # type: ignore[attr-defined] # an enum
    assert names == set(theirs.keys()) - {f"{prefix}_UNSPECIFIED"} - GATEWAYS  # type: ignore[attr-defined] # as above


def test_provenance_tells_all_it_knows_and_no_more() -> None:
    full = provenance(Provenance("backup", Switch.CAPACITY, True, True, 0.5))
    assert (full.candidate, full.switch_reason) == ("backup", pb.SWITCH_REASON_CAPACITY)
    assert full.schema_constrained
    assert full.repaired
    assert full.cached_age.ToMilliseconds() == 500
    assert provenance(Provenance()) == pb.Provenance()


@pytest.mark.parametrize("reason", Withdrawal)
def test_every_withdrawal_has_its_retraction(reason: Withdrawal) -> None:
    name = pb.RetractionReason.Name(retraction(reason).reason)
    assert name == f"RETRACTION_REASON_{reason.name}"
