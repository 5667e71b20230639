"""Two runs beside each other."""

from evals import figures
from evals.comparison import Side, compare
from evals.result import CaseResult
from tests.evals.cases import abstained, answer, case, found
from tests.evals.test_figures import result


def side(*cases: CaseResult, **settings: object) -> Side:
    return Side("yesterday", settings, figures.groups(cases), cases)


GOOD = result(case(), passages=found(("a.md", 0), ("b.md", 0)), given=[answer()])
BAD = result(case(), passages=found(("b.md", 0), ("a.md", 0)), given=[abstained()])


def test_a_run_beside_itself_shows_nothing() -> None:
    told = compare(side(GOOD, mode="dense"), side(GOOD, mode="dense"))
    assert [*told.settings, *told.figures, *told.regressions, *told.improvements] == []
    assert told.earlier == "yesterday"


def test_a_case_that_got_worse_is_a_regression_and_the_other_way_an_improvement() -> None:
    worse = compare(side(GOOD), side(BAD))
    assert [(one.id, one.what) for one in worse.regressions] == [
        ("one", "ndcg@10"),
        ("one", "outcome"),
    ]
    assert worse.regressions[1].before == "EXTRACTIVE NONE"
    assert worse.regressions[1].now == "ABSTAINED EVIDENCE_INSUFFICIENT"
    assert worse.improvements == []
    better = compare(side(BAD), side(GOOD))
    assert better.regressions == []
    assert [(one.before, one.now) for one in better.improvements][1] == (
        "ABSTAINED EVIDENCE_INSUFFICIENT",
        "EXTRACTIVE NONE",
    )


def test_a_wrong_answer_says_what_is_wrong_with_it() -> None:
    broken = result(case(restricted=["secret.md"]), given=[answer(marks=(), shown="secret.md")])
    told = compare(side(GOOD), side(broken))
    assert told.regressions[0].now == "EXTRACTIVE NONE no citation a leak"


def test_figures_that_moved_say_whether_that_is_better() -> None:
    moved = {
        one.metric: one.better for one in compare(side(GOOD), side(BAD)).figures if not one.category
    }
    assert moved["retrieval.ndcg@10"] is False
    assert moved["answers.answered"] is False
    assert moved["answers.false_refusal"] is False
    assert compare(side(BAD), side(GOOD)).figures[0].better is True


def test_being_cached_is_neither_better_nor_worse() -> None:
    cached = result(case(), passages=found(("a.md", 0), ("b.md", 0)), given=[answer(cached=True)])
    told = compare(side(GOOD), side(cached))
    assert {one.metric: one.better for one in told.figures} == {"answers.cached": None}


def test_settings_that_differ_and_cases_of_one_run_only_are_named() -> None:
    other = result(case(id="two"), given=[answer()])
    told = compare(side(GOOD, mode="dense", k=1), side(other, mode="fused", k=1))
    assert told.settings == [("mode", "dense", "fused")]
    assert (told.added, told.gone) == (["two"], ["one"])
    assert told.regressions == []
