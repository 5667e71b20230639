"""Bounds against figures."""

from pathlib import Path

import pytest

from chassis.errors import InvalidInput
from evals import gates
from evals.gold import Gate, Gold
from evals.result import CaseResult
from tests.evals.cases import abstained, answer, case, found, unanswerable
from tests.evals.test_figures import result

NOW = [
    result(case(), given=[answer()]),
    result(case(id="two", category="hard"), given=[abstained()]),
]
BEFORE = [result(case(), given=[answer()])]


def passed(
    told: dict[str, object], now: list[CaseResult], before: list[CaseResult] | None = None
) -> bool | None:
    gate = Gate.model_validate({"metric": "answers.answered", **told})
    return gates.judge([gate], now, before)[0].passed


@pytest.mark.parametrize(
    ("told", "holds"),
    [
        ({"at_least": 0.5}, True),
        ({"at_least": 0.51}, False),
        ({"at_most": 0.5}, True),
        ({"at_most": 0.49}, False),
        ({"at_least": 1.0, "categories": ["plain"]}, True),
        ({"at_least": 0.5, "categories": ["plain", "hard"]}, True),
        ({"at_least": 0.1, "categories": ["hard"]}, False),
    ],
)
def test_a_bound_includes_its_value(told: dict[str, object], holds: bool) -> None:  # noqa: FBT001 - a parameter
    assert passed(told, NOW) is holds


@pytest.mark.parametrize(
    ("told", "holds"),
    [
        ({"may_fall": 0.5}, True),
        ({"may_fall": 0.4}, False),
        ({"may_rise": 0.0}, True),
        ({"may_fall": 0.0, "categories": ["plain"]}, True),
    ],
)
def test_a_change_is_bounded_against_the_earlier_run(told: dict[str, object], holds: bool) -> None:  # noqa: FBT001 - a parameter
    assert passed(told, NOW, BEFORE) is holds


def test_a_change_without_an_earlier_run_is_not_judged() -> None:
    assert passed({"may_fall": 0.1}, NOW) is None
    assert passed({"may_fall": 0.1, "categories": ["hard"]}, NOW, BEFORE) is None


def test_a_stage_that_was_not_asked_is_not_judged() -> None:
    assert passed({"metric": "retrieval.hit@5", "at_least": 1}, NOW) is None
    assert passed({"metric": "answers.same_text", "at_least": 1}, NOW) is None


def test_a_figure_that_no_case_has_fails_its_gate() -> None:
    retrieved = [result(unanswerable(), passages=found())]
    assert passed({"metric": "retrieval.hit@5", "at_least": 1}, retrieved) is False
    assert passed({"at_least": 0.0}, [result(unanswerable(), given=[abstained()])]) is False


def test_the_gates_that_failed_are_listed() -> None:
    told = [Gate(metric="answers.answered", at_least=bound) for bound in (0.5, 0.9)]
    judged = gates.judge(told, NOW, None)
    assert [one.bound for one in gates.failed(judged)] == [0.9]


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"metric": "answers.answerd"}, r"gates\[0\].metric: there is no 'answers.answerd'"),
        ({"metric": "retrieval.ndcg@7"}, r"gates\[0\].metric: there is no 'retrieval.ndcg@7'"),
        (
            {"metric": "answers.leaks", "categories": ["plain", "easy"]},
            r"gates\[0\].categories: no case is of category 'easy'",
        ),
    ],
)
def test_a_gate_that_can_never_hold_is_an_input_error(told: dict[str, object], said: str) -> None:
    gate = Gate.model_validate({**told, "at_most": 0})
    with pytest.raises(InvalidInput, match=said):
        gates.check(Gold("gold", Path("gold.yaml"), "digest", (case(),), (gate,)))
