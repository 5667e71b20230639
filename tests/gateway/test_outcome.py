"""The outcome table, and its way over the wire."""

from itertools import product

import pytest

from gateway.outcome import Acceptance, Mode, Outcome, Reason
from gateway.wire import outcome_message, outcome_of
from sluice.answer.v1 import outcome_pb2

# As the answer contract has it, written out once more by hand.
ALLOWED = {
    ("GENERATED", "NONE", "ACCEPTED"),
    ("GENERATED", "NONE", "REVIEW_REQUIRED"),
    ("EXTRACTIVE", "NONE", "ACCEPTED"),
    ("EXTRACTIVE", "MODEL_UNAVAILABLE", "ACCEPTED"),
    ("EXTRACTIVE", "CAPACITY", "ACCEPTED"),
    ("EXTRACTIVE", "INVALID_OUTPUT", "ACCEPTED"),
    ("EXTRACTIVE", "DEADLINE", "ACCEPTED"),
    ("PREVIOUS", "MODEL_UNAVAILABLE", "ACCEPTED"),
    ("PREVIOUS", "MODEL_UNAVAILABLE", "REVIEW_REQUIRED"),
    ("PREVIOUS", "CAPACITY", "ACCEPTED"),
    ("PREVIOUS", "CAPACITY", "REVIEW_REQUIRED"),
    ("QUEUED", "REQUESTED", None),
    ("QUEUED", "MODEL_UNAVAILABLE", None),
    ("QUEUED", "CAPACITY", None),
    ("ABSTAINED", "NOTHING_FOUND", None),
    ("ABSTAINED", "EVIDENCE_INSUFFICIENT", None),
    ("UNAVAILABLE", "MODEL_UNAVAILABLE", None),
    ("UNAVAILABLE", "CAPACITY", None),
    ("UNAVAILABLE", "RETRIEVAL_UNAVAILABLE", None),
    ("UNAVAILABLE", "INVALID_OUTPUT", None),
    ("UNAVAILABLE", "REFUSED", None),
    ("UNAVAILABLE", "DEADLINE", None),
}
EVERY = list(product(Mode, Reason, [*Acceptance, None]))


def build(mode: Mode, reason: Reason, acceptance: Acceptance | None) -> Outcome:
    age = 90.5 if mode is Mode.PREVIOUS else None
    job_id = "job-1" if mode is Mode.QUEUED else ""
    return Outcome(mode, reason, acceptance, age, job_id)


def test_only_the_tables_rows_can_be_built() -> None:
    built = set()
    for mode, reason, acceptance in EVERY:
        try:
            build(mode, reason, acceptance)
        except ValueError:
            continue
        built.add((mode.value, reason.value, acceptance and acceptance.value))
    assert built == ALLOWED


@pytest.mark.parametrize(("mode", "reason", "acceptance"), sorted(ALLOWED, key=str))
def test_every_row_survives_the_wire(mode: str, reason: str, acceptance: str | None) -> None:
    outcome = build(Mode(mode), Reason(reason), Acceptance(acceptance) if acceptance else None)
    sent = outcome_message(outcome).SerializeToString()
    assert outcome_of(outcome_pb2.Outcome.FromString(sent)) == outcome


@pytest.mark.parametrize(
    ("mode", "age", "job_id"),
    [
        (Mode.PREVIOUS, None, ""),
        (Mode.EXTRACTIVE, 1.0, ""),
        (Mode.QUEUED, None, ""),
        (Mode.UNAVAILABLE, None, "job-1"),
    ],
)
def test_an_age_is_for_earlier_answers_and_a_job_for_queued_ones(
    mode: Mode, age: float | None, job_id: str
) -> None:
    acceptance = Acceptance.ACCEPTED if mode in {Mode.PREVIOUS, Mode.EXTRACTIVE} else None
    with pytest.raises(ValueError, match="no such outcome"):
        Outcome(mode, Reason.CAPACITY, acceptance, age, job_id)


@pytest.mark.parametrize(
    "message",
    [
        outcome_pb2.Outcome(),
        outcome_pb2.Outcome(generated=outcome_pb2.Generated()),
        outcome_pb2.Outcome(extractive=outcome_pb2.Extractive()),
        outcome_pb2.Outcome.FromString(b"\x32\x02\x08\x63"),  # unavailable, reason 99
    ],
)
def test_a_message_outside_the_contract_is_no_outcome(message: outcome_pb2.Outcome) -> None:
    with pytest.raises(ValueError, match=r"."):
        outcome_of(message)
