from services.generate.outcome import outcome
from services.generate.result import Verdict


def test_every_verdict_has_its_own_outcome_with_a_reason_or_acceptance() -> None:
    written = [outcome(verdict).SerializeToString() for verdict in Verdict]
    assert len(set(written)) == len(Verdict)
    for verdict in Verdict:
        mode = outcome(verdict).WhichOneof("mode")
        assert mode is not None
        detail = getattr(outcome(verdict), mode)
        assert [value for _, value in detail.ListFields()] != []
