"""Bounds that were fixed beforehand, held against what was measured."""

from collections.abc import Sequence
from dataclasses import dataclass

from chassis.errors import InvalidInput
from evals.figures import NAMES, REPEATED, Figure, Figures, figures
from evals.gold import Gate, Gold
from evals.result import CaseResult

NOTHING = "no case has this figure"
SLACK = 1e-9  # what rounding may do to a mean


@dataclass(frozen=True, slots=True)
class Judged:
    """A gate and how it went. `passed` is None where this run did not measure the figure."""

    metric: str
    categories: Sequence[str]
    rule: str
    bound: float
    value: float | None
    count: int
    passed: bool | None
    why: str
    for_full: bool


def check(gold: Gold) -> None:
    """Raises InvalidInput for a gate on a figure that does not exist, or that no case can have."""
    known = {case.category for case in gold.cases}
    for at, gate in enumerate(gold.gates):
        if gate.metric not in NAMES:
            raise InvalidInput(
                f"gates[{at}].metric: there is no {gate.metric!r}; there are"
                f" {', '.join(sorted(NAMES))}",
                field="gates",
            )
        if unknown := set(gate.categories) - known:
            raise InvalidInput(
                f"gates[{at}].categories: no case is of category {min(unknown)!r}", field="gates"
            )


def judge(
    gates: Sequence[Gate], cases: Sequence[CaseResult], before: Sequence[CaseResult] | None
) -> list[Judged]:
    """How each gate went. `before` are the cases of the earlier run, None without one."""
    return [_judge(gate, cases, before) for gate in gates]


def failed(judged: Sequence[Judged]) -> list[Judged]:
    """The gates of every run that were measured and did not hold."""
    return [one for one in judged if one.passed is False and not one.for_full]


def _judge(gate: Gate, cases: Sequence[CaseResult], before: Sequence[CaseResult] | None) -> Judged:
    figure = _of(gate, cases).get(gate.metric)
    rule, bound = gate.rule
    if figure is None:
        passed, why = _missing(gate, figures(cases))
    else:
        passed, why = _held(gate, figure.value, _of(gate, before or ()).get(gate.metric))
    return Judged(
        metric=gate.metric,
        categories=gate.categories,
        rule=rule,
        bound=bound,
        value=figure.value if figure else None,
        count=figure.count if figure else 0,
        passed=passed,
        why=why,
        for_full=gate.for_full,
    )


def _held(gate: Gate, value: float, earlier: Figure | None) -> tuple[bool | None, str]:
    rule, bound = gate.rule
    if rule in {"at_least", "at_most"}:
        return _holds(rule, value, bound), ""
    if earlier is None:
        return None, "no earlier run to compare with"
    return _holds(rule, value - earlier.value, bound), f"{earlier.value:.4g} before"


def _of(gate: Gate, cases: Sequence[CaseResult]) -> Figures:
    """The figures of the gate's categories."""
    return figures([one for one in cases if not gate.categories or one.category in gate.categories])


def _holds(rule: str, value: float, bound: float) -> bool:
    match rule:
        case "at_least":
            return value >= bound - SLACK
        case "may_fall":
            return -value <= bound + SLACK
        case _:
            return value <= bound + SLACK


def _missing(gate: Gate, found: Figures) -> tuple[bool | None, str]:
    """A stage that was not asked is no failure; a figure that its cases should have is one."""
    stage = gate.metric.partition(".")[0]
    asked = any(name.startswith(f"{stage}.") for name in found)
    if not asked or (gate.metric in REPEATED and not {*REPEATED} & {*found}):
        return None, "this run did not measure it"
    return False, NOTHING
