import pytest

from chassis.identity import AccessLevel
from cli.demo import EXAMPLES, Gold, Round, fault, rounds
from cli.gateway_service import Answer, Source

GOLD = Gold("When?", frozenset({"open.md"}), frozenset({"hidden.md"}), ("the code is 7",))


def answer(mode: str, document_id: str = "", text: str = "") -> Answer:
    source = Source("S1", document_id, "title", "", (), text, 0.9, "")
    return Answer(
        mode=mode,
        reason="NONE",
        acceptance="",
        message="",
        text=text,
        cited=("S1",) if text else (),
        sources=(source,) if document_id else (),
        timings={},
        raw={},
    )


@pytest.mark.parametrize(
    ("answered", "given", "expected"),
    [
        (True, answer("EXTRACTIVE", "open.md", "At nine."), ""),
        (True, answer("GENERATED", "open.md", "At nine."), ""),
        (True, answer("ABSTAINED"), "ABSTAINED instead of a cited answer"),
        (True, answer("EXTRACTIVE", "other.md", "At ten."), "it cites none of the documents"),
        (False, answer("ABSTAINED"), ""),
        (False, answer("EXTRACTIVE", "open.md", "At nine."), "EXTRACTIVE instead of an abstention"),
        (False, answer("UNAVAILABLE"), "UNAVAILABLE instead of an abstention"),
        (False, answer("ABSTAINED", "hidden.md"), "it shows what this person may not read"),
        (True, answer("EXTRACTIVE", "open.md", "the code is 7"), "it shows what this person"),
    ],
)
def test_each_outcome_is_checked(answered: bool, given: Answer, expected: str) -> None:  # noqa: FBT001 - a parameter
    one = Round("title", GOLD, AccessLevel.TEAM, answered=answered)
    assert fault(one, given).startswith(expected)
    assert bool(fault(one, given)) == bool(expected)


def test_the_examples_hold_the_four_rounds() -> None:
    found = rounds(EXAMPLES)
    assert [(one.level.label, one.answered) for one in found] == [
        ("team", True),
        ("team", False),
        ("team", False),
        ("restricted", True),
    ]
    refused, opened = found[2].gold, found[3].gold
    assert refused.question == opened.question
    assert refused.hidden == opened.relevant
    assert refused.secrets
