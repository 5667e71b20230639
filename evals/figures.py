"""Means and counts over cases: the numbers that move when the pipeline moves."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from evals.answers import ABSTAINED, UNAVAILABLE, Answered
from evals.case import Expected
from evals.result import CaseResult
from evals.retrieval import KS

OVERALL = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """A value over `count` cases or answers.

    `low` and `high` are the lowest and the highest of single repeats, None where there was one.
    """

    value: float
    count: int
    low: float | None = None
    high: float | None = None


Figures = Mapping[str, Figure]
Asked = tuple[CaseResult, Answered]

MEASURES = ("hit", "precision", "recall", "rr", "ndcg")
TIMES = ("seconds_p50", "seconds_p95")
OF_ANSWERS = (
    *("correct", "answered", "false_refusal", "false_acceptance", "unavailable", "leaks", "faults"),
    *("citations_valid", "right_document", "cited", "evidence", "support", "least_support"),
    *("coverage", "review", "cached", "switched", "input_tokens", "output_tokens", *TIMES),
)
REPEATED = ("answers.same_outcome", "answers.same_text")
NAMES = frozenset(
    (
        *(f"retrieval.{measure}@{k}" for measure in MEASURES for k in KS),
        *(f"retrieval.{name}" for name in ("leaks", *TIMES)),
        *(f"answers.{name}" for name in OF_ANSWERS),
        *REPEATED,
    )
)
# Of these the lower value is the better one.
LOWER_IS_BETTER = (
    *("leaks", "false_refusal", "false_acceptance", "unavailable", "review", "faults"),
    *("input_tokens", "output_tokens", *TIMES),
)
# Of these neither is: they describe.
NEUTRAL = ("cached", "switched")


def groups(cases: Sequence[CaseResult]) -> dict[str, Figures]:
    """The figures of every category, and under OVERALL those of all cases."""
    names = dict.fromkeys(case.category for case in cases)
    found = {OVERALL: figures(cases)}
    for name in names:
        found[name] = figures([case for case in cases if case.category == name])
    return found


def outcomes(cases: Sequence[CaseResult]) -> dict[str, int]:
    """How many answers ended in each mode and reason, the most frequent first."""
    return dict(Counter(outcome for case in cases for outcome in case.outcomes).most_common())


def figures(cases: Sequence[CaseResult]) -> Figures:
    """Every figure that these cases have.

    Means are over the cases that can have the value, zeroes included. Rates lie between 0 and 1,
    leaks are counted, times are in seconds.
    """
    found = _retrieval(cases)
    repeats = max((len(case.answers) for case in cases), default=0)
    answers = _answers([(case, answer) for case in cases for answer in case.answers])
    if repeats > 1:
        single = [
            _answers([(case, case.answers[number]) for case in cases if number < len(case.answers)])
            for number in range(repeats)
        ]
        answers = {name: _spread(name, figure, single) for name, figure in answers.items()}
        answers |= _variability(cases)
    return found | answers


def _retrieval(cases: Sequence[CaseResult]) -> dict[str, Figure]:
    seen = [case.retrieved for case in cases if case.retrieved]
    if not seen:
        return {}
    scored = [one.measures for one in seen if one.measures]
    names = scored[0] if scored else ()
    found = {f"retrieval.{name}": _mean(one[name] for one in scored) for name in names}
    found["retrieval.leaks"] = Figure(sum(bool(one.leaks) for one in seen), len(seen))
    found |= _times("retrieval.seconds", [one.seconds for one in seen])
    return found


def _answers(asked: Sequence[Asked]) -> dict[str, Figure]:
    if not asked:
        return {}
    answers = [answer for _, answer in asked]
    told = [answer for answer in answers if answer.has_content]
    found = {
        "correct": _mean(answer.correct for answer in answers),
        **_mistakes(asked),
        "unavailable": _mean(answer.mode == UNAVAILABLE for answer in answers),
        "leaks": Figure(sum(bool(answer.leaks) for answer in answers), len(answers)),
        "faults": Figure(sum(bool(answer.faults) for answer in answers), len(answers)),
        "citations_valid": _mean(not answer.faults for answer in told),
        **{name: _mean(_given(told, read)) for name, read in _OF_CONTENT.items()},
        "review": _mean(answer.acceptance == "REVIEW_REQUIRED" for answer in told),
        "cached": _mean(answer.cached for answer in answers),
        "switched": _mean(answer.switched for answer in answers),
        "input_tokens": _mean(_given(answers, lambda answer: answer.input_tokens)),
        "output_tokens": _mean(_given(answers, lambda answer: answer.output_tokens)),
        **_times("seconds", [answer.seconds for answer in answers]),
    }
    return {f"answers.{name}": figure for name, figure in found.items() if figure.count}


_OF_CONTENT: Mapping[str, Callable[[Answered], float | None]] = {
    "right_document": lambda answer: answer.right_document,
    "cited": lambda answer: answer.cited,
    "evidence": lambda answer: answer.evidence,
    "support": lambda answer: answer.mean_support,
    "least_support": lambda answer: answer.support,
    "coverage": lambda answer: answer.coverage,
}


def _mistakes(asked: Sequence[Asked]) -> dict[str, Figure]:
    """The two ways to be wrong, apart: refusing what can be answered, answering what cannot."""
    answerable = [answer for case, answer in asked if case.expected is Expected.ANSWERED]
    others = [answer for case, answer in asked if case.expected is not Expected.ANSWERED]
    return {
        "answered": _mean(answer.has_content for answer in answerable),
        "false_refusal": _mean(answer.mode == ABSTAINED for answer in answerable),
        "false_acceptance": _mean(answer.has_content for answer in others),
    }


def _variability(cases: Sequence[CaseResult]) -> dict[str, Figure]:
    asked = [case for case in cases if len(case.answers) > 1]
    return {
        REPEATED[0]: _mean(len(set(case.outcomes)) == 1 for case in asked),
        REPEATED[1]: _mean(len({one.text for one in case.answers}) == 1 for case in asked),
    }


def _spread(name: str, figure: Figure, single: Sequence[Figures]) -> Figure:
    values = [one[name].value for one in single if name in one]
    return replace(figure, low=min(values), high=max(values))


def _given(
    answers: Iterable[Answered], read: Callable[[Answered], float | None]
) -> Iterable[float]:
    return [value for answer in answers if (value := read(answer)) is not None]


def _mean(values: Iterable[float]) -> Figure:
    found = [float(value) for value in values]
    return Figure(math.fsum(found) / len(found) if found else 0.0, len(found))


def _times(name: str, seconds: Sequence[float]) -> dict[str, Figure]:
    return {
        f"{name}_p50": Figure(quantile(seconds, 0.5), len(seconds)),
        f"{name}_p95": Figure(quantile(seconds, 0.95), len(seconds)),
    }


def quantile(values: Sequence[float], share: float) -> float:
    """The least value that at least `share` of the values do not exceed: the nearest rank."""
    ranked = sorted(values)
    return ranked[max(math.ceil(share * len(ranked)) - 1, 0)]
