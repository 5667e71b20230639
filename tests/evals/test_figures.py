"""Means and counts: over which cases, zeroes included."""

from collections.abc import Sequence

import pytest

from evals import answers, figures, retrieval
from evals.case import Case
from evals.figures import NAMES, OVERALL
from evals.observed import Answer, Found, Mark
from evals.result import CaseResult
from tests.evals.cases import DOCUMENTS, TEXT, abstained, answer, case, found, unanswerable


def result(
    gold: Case, *, passages: Found | None = None, given: Sequence[Answer] = ()
) -> CaseResult:
    return CaseResult(
        id=gold.id,
        category=gold.category,
        severity=gold.severity,
        question=gold.question,
        expected=gold.expected,
        retrieved=retrieval.score(gold, passages, DOCUMENTS) if passages else None,
        answers=[answers.score(gold, one, DOCUMENTS) for one in given],
    )


def test_means_are_over_answerable_cases_with_their_zeroes() -> None:
    told = figures.figures(
        [
            result(case(), passages=found(("a.md", 0), ("b.md", 0))),
            result(case(id="miss"), passages=found()),
            result(unanswerable(), passages=found(("a.md", 0))),
        ]
    )
    assert (told["retrieval.recall@3"].value, told["retrieval.recall@3"].count) == (0.5, 2)
    assert told["retrieval.seconds_p50"].count == 3
    assert (told["retrieval.leaks"].value, told["retrieval.leaks"].count) == (0, 3)


def test_false_refusal_and_false_acceptance_are_apart() -> None:
    told = figures.figures(
        [
            result(case(), given=[answer()]),
            result(case(id="refused"), given=[abstained()]),
            result(case(id="down"), given=[abstained(mode="UNAVAILABLE")]),
            result(case(id="fine"), given=[answer()]),
            result(unanswerable(), given=[answer()]),
            result(unanswerable(id="hidden", secret=["x"]), given=[abstained()]),
        ]
    )
    values = {name: figure.value for name, figure in told.items()}
    assert values["answers.answered"] == pytest.approx(1 / 2)
    assert values["answers.false_refusal"] == pytest.approx(1 / 4)
    assert values["answers.false_acceptance"] == pytest.approx(1 / 2)
    assert values["answers.unavailable"] == pytest.approx(1 / 6)
    assert values["answers.correct"] == pytest.approx(3 / 6)
    assert told["answers.cited"].count == 2


def test_what_no_case_can_have_is_no_figure() -> None:
    told = figures.figures([result(unanswerable(), given=[abstained()])])
    assert "answers.answered" not in told
    assert "answers.support" not in told
    assert "answers.input_tokens" not in told
    assert not [name for name in told if name.startswith("retrieval.")]
    assert figures.figures([]) == {}


def test_every_figure_has_a_name_that_gates_know() -> None:
    counted = answer(mode="GENERATED", input_tokens=10, output_tokens=5)
    cases = [result(case(expect=["Monday"]), passages=found(), given=[counted, counted])]
    cases.append(result(unanswerable(), given=[abstained(), abstained()]))
    assert {*figures.figures(cases)} == NAMES


def test_groups_are_by_category_and_overall() -> None:
    groups = figures.groups([result(case(), given=[answer()]), result(unanswerable())])
    assert [*groups] == [OVERALL, "plain", "nothing"]
    assert groups["nothing"] == {}
    assert groups["plain"]["answers.correct"].count == 1


def test_repeats_show_how_much_single_ones_differ() -> None:
    other = answer(text=f"{TEXT} ", marks=(Mark("S1", 0, len(TEXT), 1),))
    told = figures.figures(
        [
            result(case(), given=[answer(), abstained()]),
            result(case(id="two"), given=[answer(), other]),
        ]
    )
    answered = told["answers.answered"]
    assert (answered.value, answered.count) == (0.75, 4)
    assert (answered.low, answered.high) == (0.5, 1)
    assert told["answers.same_outcome"].value == pytest.approx(1 / 2)
    assert told["answers.same_text"].value == 0


def test_outcomes_are_counted_by_mode_and_reason() -> None:
    told = figures.outcomes(
        [result(case(), given=[answer(), abstained()]), result(unanswerable(), given=[abstained()])]
    )
    assert told == {"ABSTAINED EVIDENCE_INSUFFICIENT": 2, "EXTRACTIVE NONE": 1}


@pytest.mark.parametrize(
    ("share", "value"), [(0.0, 1), (0.25, 1), (0.5, 2), (0.51, 3), (0.95, 4), (1.0, 4)]
)
def test_quantiles_are_values_that_were_measured(share: float, value: float) -> None:
    assert figures.quantile([4, 1, 3, 2], share) == value
