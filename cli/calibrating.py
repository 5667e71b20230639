"""Gathers the evidence of every case that calibration sweeps thresholds over."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from chassis.settings import PREFIX
from cli import suite_settings
from cli.concurrency import each
from cli.evidence_service import EvidenceService, Search
from cli.output import Output
from cli.progress import progress
from cli.questioning import patiently
from evals.calibration import Evidence, Sweep, critical, sweep
from evals.case import Case, Expected
from evals.result import CaseResult
from evals.retrieval import Retrieved
from services.generate.extract import Calibration
from services.generate.extraction import Extraction
from services.generate.task import Task

LEAST = 0.01
GENERATED = "GENERATED"


@dataclass(frozen=True, slots=True)
class Calibrating:
    """Where evidence comes from, and what is set now."""

    evidence: EvidenceService
    data: Path
    at_once: int
    output: Output

    async def sweeps(
        self, cases: Sequence[Case], asked: Sequence[CaseResult], space: str
    ) -> list[Sweep]:
        """One sweep a threshold that decides in this suite; `space` is that of retrieve's scores.

        Raises InvalidInput where there are too few cases of a kind, and what the stages raise.
        """
        now = suite_settings.generate(self.data)
        if any(answer.mode == GENERATED for case in asked for answer in case.answers):
            supports = [_supported(case) for case in asked]
            floor = now.answer_support_floor
            found = [sweep(f"{PREFIX}ANSWER_SUPPORT_FLOOR", "support", supports, floor)]
        else:
            quoted = await self._quoted(cases, now.calibration)
            least = now.extractive_least_support
            found = [sweep(f"{PREFIX}EXTRACTIVE_LEAST_SUPPORT", "support", quoted, least)]
        scores = [_scored(case, case.retrieved) for case in asked if case.retrieved]
        if scores:
            threshold = f"score_threshold_{space.lower()}"
            passing = getattr(suite_settings.retrieve(self.data), threshold, None)
            found.append(sweep(f"{PREFIX}{threshold.upper()}", space, scores, passing))
        return found

    async def _quoted(self, cases: Sequence[Case], rules: Calibration) -> list[Evidence]:
        """The most support at which generate's own rules still quote something, for every case."""
        found: dict[str, Evidence] = {}

        async def one(case: Case) -> None:
            task = await patiently(lambda: self.evidence.task(case, Search()))
            value = await critical(partial(_is_quoted, task, rules), low=LEAST)
            found[case.id] = Evidence(case.id, case.is_answerable, value)
            step()

        shown = not self.output.as_json
        with progress("calibrate", len(cases), shown=shown, unit="cases") as step:
            await each(cases, one, at_once=self.at_once)
        return [found[case.id] for case in cases]


def _supported(case: CaseResult) -> Evidence:
    """A model's answer passes as long as its least supported sentence does."""
    supports = [answer.support for answer in case.answers]
    known = [support for support in supports if support is not None]
    value = min(known) if known and len(known) == len(supports) else None
    return Evidence(case.id, case.expected is Expected.ANSWERED, value)


def _scored(case: CaseResult, retrieved: Retrieved) -> Evidence:
    """A question passes retrieve while a passage does, which has to be a right one if one is."""
    answerable = case.expected is Expected.ANSWERED
    return Evidence(case.id, answerable, retrieved.fitting if answerable else retrieved.best)


async def _is_quoted(task: Task, calibration: Calibration, threshold: float) -> bool:
    extraction = Extraction(replace(calibration, least_support=threshold))
    return bool((await extraction.answer(task)).text)
