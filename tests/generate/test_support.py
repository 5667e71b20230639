import pytest

from services.generate.support import BROKEN, Carrier, support

SOURCE = (
    "The deploy window is Monday to Thursday, 09:30 to 15:30 harbour time. Never purge the queue"
    " payment-captures. A change to Pontoon needs two reviewers. Other queues may be purged."
)
FLOOR = 0.5


def of(statement: str, source: str = SOURCE) -> float:
    return support(statement, [Carrier.read(source)])


@pytest.mark.parametrize(
    "statement",
    [
        "The deploy window is Monday to Thursday.",
        "Deploys are possible from Monday to Thursday, 09:30 to 15:30.",
        "Pontoon changes need 2 reviewers.",
        "Do not purge the payment-captures queue.",
        "Yes.",
    ],
)
def test_what_the_source_says_is_carried(statement: str) -> None:
    assert of(statement) >= FLOOR


@pytest.mark.parametrize(
    "statement",
    [
        "The deploy window is Monday to Thursday, 09:30 to 16:30 harbour time.",
        "A change to Pontoon needs three reviewers.",
        "Purge the queue payment-captures.",
        "A change to Pontoon never needs two reviewers.",
        "A change to Pontoon doesn't need two reviewers.",
    ],
)
def test_a_changed_number_or_negation_breaks_it(statement: str) -> None:
    assert of(statement) <= BROKEN


def test_what_the_source_does_not_say_is_not_carried() -> None:
    assert of("The salary of engineers rises every spring.") < FLOOR


def test_several_sources_carry_a_statement_together() -> None:
    statement = "Boats leave from Lysund at nine and dinner follows at Skarholm."
    parts = ["Boats leave from Lysund at nine.", "At Skarholm dinner follows."]
    alone = [of(statement, part) for part in parts]
    together = support(statement, [Carrier.read(part) for part in parts])
    assert together > max(alone)
    assert together == 1


def test_the_other_languages_negations_count_too() -> None:
    source = "Die Tür darf nicht geöffnet werden. A lista não é publicada."
    assert of("Die Tür darf geöffnet werden.", source) <= BROKEN
    assert of("A lista é publicada.", source) <= BROKEN
    assert of("Die Tür darf nicht geöffnet werden.", source) == 1
