"""Whether a candidate may answer in another one's stead: the rules, without the model.

The bounds are the gates, which are read before the run. The cases are the held-out half, which no
threshold and no prompt was chosen on, as far as their askers' levels are allowed to the candidate.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from chassis.errors import InvalidInput
from chassis.identity import AccessLevel
from evals.calibration import is_held_out
from evals.case import Case, Expected
from evals.gates import Judged
from evals.gold import Gate
from evals.result import CaseResult

FULL, REVIEW = "full", "review"
STAGE = "answers."
_FAMILY = re.compile(r"[a-z]+")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a model is: its name, its endpoint's host, and the pool that bounds calls to it."""

    model: str
    host: str
    pool: str


@dataclass(frozen=True, slots=True)
class Selection:
    """The cases of a qualification, and how many were left out and why."""

    cases: tuple[Case, ...]
    development: int
    above_levels: int


@dataclass(frozen=True, slots=True)
class Count:
    """Answers of one category and severity: `answered` have content, `leaked` show too much."""

    category: str
    severity: str
    answers: int
    answered: int
    correct: int
    leaked: int


@dataclass(frozen=True, slots=True)
class Qualification:
    """How a candidate did. `reasons` say why it did not pass, or not for mode full.

    `shared` are the dependencies that it has in common with the primary: what takes one of them
    away takes both.
    """

    candidate: str
    place: Place
    fingerprint: str
    served_models: Sequence[str]
    levels: Sequence[str]
    passed: bool
    mode: str
    reasons: Sequence[str]
    shared: Sequence[str]
    counts: Sequence[Count]
    development: int
    above_levels: int


def select(cases: Sequence[Case], levels: Sequence[AccessLevel]) -> Selection:
    """The held-out cases whose askers read nothing above the levels.

    Raises InvalidInput where none of them is to be answered, or none is not, or where a level has
    nobody who asks at it: nothing would be known of its documents.
    """
    held_out = [case for case in cases if is_held_out(case.id)]
    allowed = [case for case in held_out if AccessLevel.parse(case.asker.level) <= max(levels)]
    kinds = {case.expected is Expected.ANSWERED for case in allowed}
    if kinds != {True, False}:
        raise InvalidInput(
            "a qualification needs held-out cases that are to be answered, and others; of these"
            f" levels there are {len(allowed)} held-out cases, all of one kind",
            field="questions",
        )
    untried = {level.label for level in levels} - {case.asker.level for case in allowed}
    if untried:
        raise InvalidInput(f"no held-out case is asked at level {min(untried)}", field="levels")
    return Selection(tuple(allowed), len(cases) - len(held_out), len(held_out) - len(allowed))


def check_gates(gates: Sequence[Gate]) -> None:
    """Raises InvalidInput where no gate is on answers: there was nothing to hold them against."""
    if not any(gate.metric.startswith(STAGE) and not gate.for_full for gate in gates):
        raise InvalidInput("a qualification needs gates on answers", field="gates")


def conclude(gates: Sequence[Judged], served_models: Sequence[str]) -> tuple[bool, str, list[str]]:
    """Whether it passed, the mode, and why not."""
    told = [gate for gate in gates if gate.metric.startswith(STAGE)]
    missed = [gate for gate in told if not gate.passed]
    reasons = [_worded(gate) for gate in missed]
    passed = all(gate.for_full for gate in missed)
    if len(served_models) != 1:
        passed = False
        reasons.append(f"{len(served_models)} models served, where one has to be named")
    demanded = any(gate.for_full for gate in told)
    if passed and not demanded:
        reasons.append("mode full needs gates that are marked for_full")
    return passed, FULL if passed and demanded and not missed else REVIEW, reasons


def shared(candidate: Place, primary: Place) -> list[str]:
    """What both depend on."""
    told = []
    if candidate.pool == primary.pool:
        told.append(f"pool {candidate.pool}")
    if candidate.host == primary.host:
        told.append(f"host {candidate.host}")
    family = _family(candidate.model)
    if family and family == _family(primary.model):
        told.append(f"model family {family}")
    return told


def counts(cases: Sequence[CaseResult]) -> list[Count]:
    """Answers by category and severity, in the order of the cases."""
    kinds = dict.fromkeys((case.category, case.severity) for case in cases)
    return [_count(cases, *kind) for kind in kinds]


def _count(cases: Sequence[CaseResult], category: str, severity: str) -> Count:
    answers = [
        answer
        for case in cases
        if (case.category, case.severity) == (category, severity)
        for answer in case.answers
    ]
    return Count(
        category=category,
        severity=severity,
        answers=len(answers),
        answered=sum(answer.has_content for answer in answers),
        correct=sum(answer.correct for answer in answers),
        leaked=sum(bool(answer.leaks) for answer in answers),
    )


def _worded(gate: Judged) -> str:
    value = "not measured" if gate.value is None else f"{gate.value:.4g}"
    of = f" of {', '.join(gate.categories)}" if gate.categories else ""
    mode = " (for mode full)" if gate.for_full else ""
    bound = f"{gate.rule.replace('_', ' ')} {gate.bound:g}"
    return f"{gate.metric}{of} is {value}, bound {bound}{mode}"


def _family(model: str) -> str:
    """The first word of a model's own name: gpt of openai/gpt-4.1-mini."""
    found = _FAMILY.match(model.rpartition("/")[2].lower())
    return found[0] if found else ""
