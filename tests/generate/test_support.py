from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from services.generate.names import named
from services.generate.support import BROKEN, Carrier, support

PASSAGES = yaml.safe_load(Path(__file__).with_name("statements.yaml").read_text())
WRONG = ("number", "unit", "name", "negation", "unsaid")
# Every passage is retrieved beside every other, so that each knows the others' names.
NAMED = frozenset().union(
    *(named(passage["text"]) for passage in PASSAGES if passage["language"] != "de")
)

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


def test_a_negation_that_is_taken_from_one_clause_of_several_breaks_it() -> None:
    source = "Nobody on leave may open the safe, so that a claim does not fail."
    twisted = "A custodian may {}hold a key in the week of a visit, so that a page does {}fail."
    shown = twisted.format("not ", "not ")
    assert of(shown, f"{source} {shown}") == 1
    for others in (("", "not "), ("not ", ""), ("", "")):
        assert of(twisted.format(*others), shown) <= BROKEN
    moved = "so that a page does not fail, a custodian may not hold a key in the week of a visit."
    assert of(moved, shown) == 1


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


def test_a_number_from_a_sentence_about_something_else_breaks_it() -> None:
    source = "Pages are answered within 5 minutes. The harbour has 12 cranes. Reviews take 30 days."
    assert of("Pages are answered within 30 days.", source) <= BROKEN
    assert of("Pages are answered within 5 minutes.", source) == 1


def test_a_name_at_the_beginning_counts_where_other_sources_call_it_one() -> None:
    carrier = Carrier.read("At Corvane a card payment costs 9 cents.")
    statement = "Tallypay charges 9 cents for a card payment."
    assert support(statement, [carrier]) > BROKEN
    assert support(statement, [carrier], {"tallypay"}) <= BROKEN


def test_another_name_with_the_same_verb_breaks_it() -> None:
    carrier = Carrier.read("Lantern calls the secondary after 10 minutes.")
    assert support("Beacon calls the secondary after 10 minutes.", [carrier]) <= BROKEN
    assert support("Lantern calls the secondary after 10 minutes.", [carrier]) == 1


def test_what_stands_in_a_heading_is_said_of_the_text() -> None:
    carrier = Carrier.read("The window is Monday to Thursday.", "Deploys of Gangway")
    assert support("Gangway deploys: the window is Monday to Thursday.", [carrier]) == 1


def told(half: str, kinds: tuple[str, ...]) -> Iterator[float]:
    """The support of every labelled statement of a half."""
    for passage in PASSAGES:
        if passage["half"] == half:
            carrier = Carrier.read(passage["text"], passage["title"])
            for kind in kinds:
                for statement in passage.get(kind, ()):
                    yield support(statement, [carrier], NAMED)


@pytest.mark.parametrize(
    ("half", "needless", "missed"), [("development", 1, 1), ("held_out", 0, 2)]
)
def test_the_floor_parts_what_is_carried_from_what_is_not(
    half: str, needless: int, missed: int
) -> None:
    carried, wrong = list(told(half, ("carried",))), list(told(half, WRONG))
    assert len(carried) + len(wrong) > 120
    assert sum(each < FLOOR for each in carried) <= needless
    assert sum(each >= FLOOR for each in wrong) <= missed


@pytest.mark.parametrize(
    ("shown", "turned"),
    [
        ("Leave is granted after 10 working days of notice.", ("after", "before")),
        ("The first pipeline deploys the release candidate.", ("first", "second")),
        ("Visitors must sign the register at the gate.", ("must", "may")),
        ("Only the duty officer opens the north gate.", ("Only", "Also")),
        ("Pay more than the standard fare on the night ferry.", ("more", "less")),
        ("Der Antrag wird vor der Wartung gestellt.", ("vor", "nach")),
        ("O pedido é feito antes da manutenção anual.", ("antes", "depois")),
    ],
)
def test_an_order_a_duty_or_an_extent_that_was_exchanged_is_not_carried(
    shown: str, turned: tuple[str, str]
) -> None:
    carriers = [Carrier.read(shown)]
    assert support(shown, carriers) == 1.0
    assert support(shown.replace(*turned), carriers) <= BROKEN
