"""Who may stand in for the primary, and why not."""

from collections.abc import Sequence

import pytest

from chassis.errors import InvalidInput
from chassis.identity import AccessLevel
from evals import gates, qualification
from evals.calibration import is_held_out
from evals.gates import Judged
from evals.gold import Gate
from evals.qualification import Place, conclude, select, shared
from evals.result import CaseResult
from tests.evals.cases import abstained, answer, case, unanswerable
from tests.evals.test_figures import result

PUBLIC, TEAM = AccessLevel.PUBLIC, AccessLevel.TEAM
HELD_OUT = [name for name in map(str, range(30)) if is_held_out(name)]
DEVELOPMENT = [name for name in map(str, range(30)) if not is_held_out(name)]
CASES = [
    case(id=DEVELOPMENT[0]),
    case(id=HELD_OUT[0]),
    unanswerable(id=HELD_OUT[1]),
    case(id=HELD_OUT[2], asker={"level": "restricted"}),
    case(id=HELD_OUT[3], asker={"level": "public"}, relevant=[{"document": "b.md", "grade": 2}]),
]
GOOD = [result(case(), given=[answer(model="m")]), result(unanswerable(), given=[abstained()])]
BOUND = Gate(metric="answers.correct", at_least=1)
FULL = Gate(metric="answers.review", at_most=0, for_full=True)


def judged(told: Sequence[Gate], cases: Sequence[CaseResult] = GOOD) -> list[Judged]:
    return gates.judge(told, cases, None)


def test_only_held_out_cases_within_the_levels_are_asked() -> None:
    chosen = select(CASES, [PUBLIC, TEAM])
    assert [one.id for one in chosen.cases] == [HELD_OUT[0], HELD_OUT[1], HELD_OUT[3]]
    assert (chosen.development, chosen.above_levels) == (1, 1)


def test_cases_of_one_kind_alone_qualify_nobody() -> None:
    with pytest.raises(InvalidInput, match="there are 1 held-out cases, all of one kind"):
        select(CASES, [PUBLIC])


def test_a_level_at_which_nobody_asks_is_not_qualified_for() -> None:
    with pytest.raises(InvalidInput, match="no held-out case is asked at level public"):
        select(CASES[:3], [PUBLIC, TEAM])


@pytest.mark.parametrize("told", [[], [Gate(metric="retrieval.hit@5", at_least=1)], [FULL]])
def test_without_a_bound_on_answers_there_is_nothing_to_pass(told: list[Gate]) -> None:
    with pytest.raises(InvalidInput, match="needs gates on answers"):
        qualification.check_gates(told)


def test_who_keeps_every_bound_answers_in_full() -> None:
    assert conclude(judged([BOUND, FULL]), ["m"]) == (True, "full", [])


def test_who_misses_a_bound_for_full_answers_with_reviews() -> None:
    reviewed = [result(case(), given=[answer(acceptance="REVIEW_REQUIRED")])]
    passed, mode, reasons = conclude(judged([BOUND, FULL], reviewed), ["m"])
    assert (passed, mode) == (True, "review")
    assert reasons == ["answers.review is 1, bound at most 0 (for mode full)"]


def test_full_is_never_given_without_bounds_for_it() -> None:
    passed, mode, reasons = conclude(judged([BOUND]), ["m"])
    assert (passed, mode) == (True, "review")
    assert reasons == ["mode full needs gates that are marked for_full"]


def test_who_misses_a_bound_or_leaves_one_unmeasured_does_not_pass() -> None:
    told = [BOUND, FULL, Gate(metric="answers.input_tokens", at_most=100)]
    passed, mode, reasons = conclude(judged(told), ["m"])
    assert (passed, mode) == (False, "review")
    assert reasons == ["answers.input_tokens is not measured, bound at most 100"]
    bad = [result(case(), given=[abstained()])]
    assert conclude(judged([BOUND], bad), ["m"])[0] is False


@pytest.mark.parametrize("served", [[], ["one", "two"]])
def test_exactly_one_model_has_to_have_served(served: list[str]) -> None:
    passed, _, reasons = conclude(judged([BOUND, FULL]), served)
    assert not passed
    assert reasons == [f"{len(served)} models served, where one has to be named"]


def test_what_falls_with_the_primary_is_named() -> None:
    primary = Place("gpt-4.1", "models.example", "answers")
    assert shared(Place("openai/gpt-5-mini", "models.example", "backup"), primary) == [
        "host models.example",
        "model family gpt",
    ]
    assert shared(Place("llama3", "other.example", "answers"), primary) == ["pool answers"]
    assert shared(Place("7b", "other.example", "b"), Place("8b", "third.example", "c")) == []


def test_answers_are_counted_by_category_and_severity() -> None:
    severe = case(id="severe", severity="severe")
    cases = [*GOOD, result(severe, given=[answer(), abstained()])]
    told = qualification.counts(cases)
    assert [(one.category, one.severity, one.answers, one.correct) for one in told] == [
        ("plain", "normal", 1, 1),
        ("nothing", "normal", 1, 1),
        ("plain", "severe", 2, 1),
    ]
    assert [one.answered for one in told] == [1, 0, 1]
