"""Thresholds are chosen on one half and confirmed on the other."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from chassis.errors import InvalidInput
from evals.calibration import Evidence, critical, is_held_out, rates, sweep

DEVELOPMENT = [name for name in map(str, range(40)) if not is_held_out(name)]
HELD_OUT = [name for name in map(str, range(40)) if is_held_out(name)]


def evidence(
    names: list[str], answerable: list[float | None], others: list[float | None]
) -> list[Evidence]:
    told = [(value, True) for value in answerable] + [(value, False) for value in others]
    return [
        Evidence(name, is_answerable, value)
        for name, (value, is_answerable) in zip(names, told, strict=False)
    ]


EASY = [
    *evidence(DEVELOPMENT, [0.7, 0.8, 0.9], [0.1, 0.2]),
    *evidence(HELD_OUT, [0.6, 0.3], [0.5, None]),
]


def test_a_case_stays_on_its_side_whatever_else_there_is() -> None:
    assert not is_held_out("deploy-window")
    assert is_held_out("capstan-replicas")
    assert 0.4 < sum(is_held_out(str(number)) for number in range(1_000)) / 1_000 < 0.6


def test_both_rates_at_a_threshold() -> None:
    at = rates(evidence(DEVELOPMENT, [0.7, None, 0.9], [0.8, 0.2]), 0.75)
    assert at.false_refusal == pytest.approx(2 / 3)
    assert at.false_acceptance == pytest.approx(1 / 2)
    assert rates(evidence(DEVELOPMENT, [0.7], [0.7]), 0.7).false_acceptance == 1


def test_where_evidence_parts_them_the_threshold_lies_between() -> None:
    told = sweep("SETTING", "support", EASY)
    balanced, strict = told.choices
    assert 0.2 < balanced.development.threshold < 0.7
    assert balanced.development.threshold == pytest.approx(0.45, abs=0.02)
    assert (balanced.development.false_acceptance, balanced.development.false_refusal) == (0, 0)
    assert strict.development == balanced.development
    assert told.sizes == (3, 2, 2, 2)


def test_the_held_out_half_confirms_and_never_chooses() -> None:
    chosen = sweep("SETTING", "support", EASY).choices[0]
    assert chosen.held_out.threshold == chosen.development.threshold
    assert chosen.held_out.false_acceptance == pytest.approx(1 / 2)
    assert chosen.held_out.false_refusal == pytest.approx(1 / 2)


def test_the_value_that_is_set_now_is_shown_beside() -> None:
    told = sweep("SETTING", "support", EASY, current=0.75)
    now = told.choices[-1]
    assert (now.rule, now.development.threshold) == ("as it is now", 0.75)
    assert now.development.false_refusal == pytest.approx(1 / 3)


def test_strict_accepts_nothing_falsely_and_balanced_weighs_both() -> None:
    hard = [
        *evidence(DEVELOPMENT, [0.3, 0.4, 0.5, 0.9], [0.1, 0.2, 0.8]),
        *evidence(HELD_OUT, [0.5], [0.5]),
    ]
    balanced, strict = sweep("SETTING", "support", hard).choices
    assert balanced.development.false_acceptance == pytest.approx(1 / 3)
    assert balanced.development.false_refusal == 0
    assert strict.development.false_acceptance == 0
    assert strict.development.false_refusal == pytest.approx(3 / 4)


def test_too_few_cases_of_a_kind_are_an_input_error() -> None:
    with pytest.raises(InvalidInput, match="3 answerable and 0 others to choose on, 2 and 2 to"):
        sweep("SETTING", "support", [one for one in EASY if one.answerable or is_held_out(one.id)])


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 1) | st.none()), min_size=40, max_size=40))
def test_a_higher_threshold_accepts_less_and_refuses_more(told: list[tuple[bool, float]]) -> None:
    cases = [
        Evidence(str(number), answerable if number % 5 else number % 2 == 0, value)
        for number, (answerable, value) in enumerate(told)
    ]
    kinds = {(one.answerable, is_held_out(one.id)) for one in cases}
    assume(len(kinds) == 4)
    curve = sweep("SETTING", "support", cases).curve
    accepted = [at.false_acceptance for at in curve]
    refused = [at.false_refusal for at in curve]
    assert accepted == sorted(accepted, reverse=True)
    assert refused == sorted(refused)
    assert (accepted[-1], refused[-1]) == (0, 1)


@pytest.mark.parametrize("limit", [0.0, 0.25, 0.5, 0.999, 1.0])
async def test_the_critical_threshold_is_the_last_that_still_answers(limit: float) -> None:
    async def answers(threshold: float) -> bool:
        return threshold <= limit

    found = await critical(answers)
    assert found == pytest.approx(limit, abs=1e-3)


async def test_what_is_never_answered_has_no_critical_threshold() -> None:
    async def never(_threshold: float) -> bool:
        return False

    assert await critical(never) is None
