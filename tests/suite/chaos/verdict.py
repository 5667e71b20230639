"""What a run under faults came to: its figures, and everything that must not have been."""

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench.parts import arrivals
from capacity import Limits
from tests.suite.chaos.asking import Told
from tests.suite.chaos.documents import Library, complaints, marks
from tests.suite.chaos.faults import Fault
from tests.suite.chaos.load import Asked, Load
from tests.suite.conftest import CONTENT

KINDS = ("wrong", "leaked", "lost", "unworded", "unheard", "late", "overshoot", "broken")
LABELS = re.compile(r"\s*\[S\d+\](?:\[S\d+\])*")


@dataclass(frozen=True, slots=True)
class Bounds:
    """`deadline` is what the gateway grants, `slack` what a busy machine may add, in seconds."""

    deadline: float
    slack: float
    limits: Limits


def away(faults: Sequence[Fault], part: str) -> list[tuple[float, float]]:
    return [
        (fault.at, math.inf if fault.whole is None else fault.whole)
        for fault in faults
        if part in fault.parts
    ]


def overlap(told: Told, spans: Sequence[tuple[float, float]]) -> float:
    """Seconds of a call during which a part was away."""
    return sum(max(0.0, min(told.ended, end) - max(told.began, begin)) for begin, end in spans)


def wrong(library: Library, asked: Asked) -> Iterator[str]:
    """What is wrong with an answer or leaked by it, and with what it rests on."""
    told, answer = asked.told, asked.told.answer
    yield from complaints(library, asked.reader, asked.since, told.shown)
    if answer is None or answer.mode not in CONTENT | {"PREVIOUS"}:
        return
    if not answer.cited or not answer.cited <= answer.sources.keys():
        yield f"wrong: cites {sorted(answer.cited)} of {sorted(answer.sources)}"
    rest = LABELS.sub("", answer.text)
    for mark in set(marks(answer.text)):
        for sentence in library.documents[mark.tenant, mark.word].sentences(mark.version):
            if any(sentence in text for text in answer.sources.values()):
                rest = rest.replace(sentence, "")
        # The nearest sentences that a reader may read are quoted where the model cannot be asked.
        if mark.word != asked.word and answer.mode == "GENERATED":
            yield f"wrong: asked of {asked.word}, answered {mark}"
    if rest.strip():
        yield f"wrong: no source says {rest.strip()!r}"


def failures(load: Load, faults: Sequence[Fault], bounds: Bounds) -> Iterator[str]:
    """Calls that failed without words, unheard though the gateway was there, or too late."""
    gone = away(faults, "gateway")
    for told in [*load.calls, *(asked.told for asked in load.questions)]:
        if told.unworded:
            yield f"unworded: {told.face} {told.unworded}"
        held_up = overlap(told, gone)
        if told.unheard and not held_up:
            yield f"unheard: {told.face} {told.outcome} while the gateway was there"
        if (took := told.ended - told.began) > bounds.deadline + bounds.slack + held_up:
            yield f"late: {told.face} {told.outcome} after {took:.1f} s"


def lost(load: Load) -> Iterator[str]:
    for job in load.jobs:
        yield from (f"lost: {problem}" for problem in job.problems)
        if job.id and job.ended is None:
            yield f"lost: job {job.id} has not ended"


@dataclass(frozen=True, slots=True)
class Verdict:
    problems: Sequence[str]
    figures: str


def judge(load: Load, faults: Sequence[Fault], log: Path, bounds: Bounds) -> Verdict:
    """`log` is the provider's own."""
    seen = arrivals.read(log)
    held = arrivals.held(seen, bounds.limits)
    found = [
        *(problem for asked in load.questions for problem in wrong(load.library, asked)),
        *failures(load, faults, bounds),
        *lost(load),
        *(f"broken: not whole again after {fault}" for fault in faults if fault.whole is None),
        *([f"overshoot: {held}"] if held["over"] else []),
    ]
    return Verdict(found, _figures(load, faults, found, f"{len(seen)} calls, {held}"))


def _figures(load: Load, faults: Sequence[Fault], problems: Sequence[str], provider: str) -> str:
    asked = [*load.calls, *(one.told for one in load.questions)]
    outcomes = Counter((told.face, told.outcome) for told in asked)
    kinds = Counter(problem.partition(":")[0].partition(" ")[0] for problem in problems)
    recoveries = sorted(fault.recovery for fault in faults)
    struck = Counter(f"{fault.kind} {part}" for fault in faults for part in fault.parts)
    ends = Counter(job.ended["state"] for job in load.jobs if job.ended)
    versions = sum(one.accepted for one in load.library.documents.values())
    lines = [
        f"faults: {len(faults)}: {_counted(struck)}",
        f"calls: {len(asked)}",
        *(f"  {face:7} {end:34} {count:6}" for (face, end), count in sorted(outcomes.items())),
        f"documents: {versions} versions accepted",
        f"jobs: {len(load.accepted())} accepted, ended {_counted(ends)}",
        f"provider: {provider}",
        ", ".join(f"{kind} {kinds[kind]}" for kind in KINDS),
        f"recovery: p50 {median(recoveries):.1f} s, max {recoveries[-1]:.1f} s",
    ]
    return "\n".join(lines)


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
