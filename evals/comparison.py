"""This run beside an earlier one: what was set differently, which figures and cases moved."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from evals.figures import LOWER_IS_BETTER, NEUTRAL, Figures
from evals.result import CaseResult

LEAST = 1e-9  # a change below this is rounding
DEPTH = "ndcg@10"


@dataclass(frozen=True, slots=True)
class Moved:
    """A figure of both runs that changed. `better` is None where neither direction is."""

    metric: str
    category: str
    before: float
    now: float
    better: bool | None


@dataclass(frozen=True, slots=True)
class Changed:
    """A case that went another way; `what` names it: a measure, or the outcome."""

    id: str
    category: str
    what: str
    before: str
    now: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """`settings` that differ, as (name, before, now); `added` and `gone` are ids of cases."""

    earlier: str
    settings: Sequence[tuple[str, str, str]]
    figures: Sequence[Moved]
    regressions: Sequence[Changed]
    improvements: Sequence[Changed]
    added: Sequence[str]
    gone: Sequence[str]


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two runs."""

    date: str
    settings: Mapping[str, object]
    groups: Mapping[str, Figures]
    cases: Sequence[CaseResult]


def compare(before: Side, now: Side) -> Comparison:
    """Cases that only one run has change nothing but the lists of them."""
    old = {case.id: case for case in before.cases}
    new = {case.id: case for case in now.cases}
    both = [(old[name], new[name]) for name in new if name in old]
    return Comparison(
        earlier=before.date,
        settings=_settings(before.settings, now.settings),
        figures=list(_moved(before.groups, now.groups)),
        regressions=[change for pair in both for change in _worse(*pair)],
        improvements=[change for was, case in both for change in _worse(case, was, swap=True)],
        added=[name for name in new if name not in old],
        gone=[name for name in old if name not in new],
    )


def _settings(
    before: Mapping[str, object], now: Mapping[str, object]
) -> list[tuple[str, str, str]]:
    return [
        (name, str(before.get(name)), str(value))
        for name, value in now.items()
        if before.get(name) != value
    ]


def _moved(before: Mapping[str, Figures], now: Mapping[str, Figures]) -> Iterable[Moved]:
    for category, figures in now.items():
        for metric, figure in figures.items():
            earlier = before.get(category, {}).get(metric)
            if earlier and abs(figure.value - earlier.value) > LEAST:
                better = _better(metric, figure.value - earlier.value)
                yield Moved(metric, category, earlier.value, figure.value, better)


def _better(metric: str, change: float) -> bool | None:
    name = metric.partition(".")[2]
    if name in NEUTRAL:
        return None
    return (change < 0) is (name in LOWER_IS_BETTER)


def _worse(was: CaseResult, case: CaseResult, *, swap: bool = False) -> Iterable[Changed]:
    """What got worse from one to the other; told the other way round with `swap`."""
    for what, old, new in _falls(was, case):
        before, now = (new, old) if swap else (old, new)
        yield Changed(case.id, case.category, what, before, now)


def _falls(was: CaseResult, case: CaseResult) -> Iterable[tuple[str, str, str]]:
    if was.retrieved and case.retrieved and {*was.retrieved.measures} & {*case.retrieved.measures}:
        old, new = was.retrieved.measures[DEPTH], case.retrieved.measures[DEPTH]
        if new < old - LEAST:
            yield DEPTH, f"{old:.3f}", f"{new:.3f}"
    if was.correct and case.correct is False:
        yield "outcome", _told(was), _told(case)


def _told(case: CaseResult) -> str:
    wrong = next((answer for answer in case.answers if not answer.correct), case.answers[0])
    notes = [*wrong.faults, *(["a leak"] if wrong.leaks else [])]
    return " ".join([f"{wrong.mode} {wrong.reason}", *notes])
