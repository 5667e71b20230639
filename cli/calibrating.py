"""Gathers the evidence of every case that calibration sweeps thresholds over."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Self

from chassis.settings import PREFIX
from cli.concurrency import each
from cli.evidence_service import EvidenceService, Search
from cli.output import Output
from cli.progress import progress
from cli.questioning import patiently
from evals.calibration import Evidence, Sweep, critical, sweep
from evals.case import Case, Expected
from evals.result import CaseResult
from evals.retrieval import Retrieved
from local import profile, state
from services.generate.extract import Calibration
from services.generate.extraction import Extraction
from services.generate.settings import GenerateSettings
from services.generate.task import Task

LEAST = 0.01
LEAST_SUPPORT, FLOOR, THRESHOLD = (
    "extractive_least_support",
    "answer_support_floor",
    "score_threshold",
)
GENERATED = "GENERATED"


@dataclass(frozen=True, slots=True)
class Told:
    """The settings of the suite that is evaluated, as far as they are known here."""

    settings: Mapping[str, str]

    @classmethod
    def of(cls, data: Path) -> Self:
        """Those of the suite on the data folder, else of the environment."""
        suite = state.read(data)
        return cls(profile.load(suite.profile, os.environ) if suite else os.environ)

    def number(self, name: str) -> float | None:
        """The setting, else the default of generate; None where neither is."""
        field = GenerateSettings.model_fields.get(name)
        text = self.settings.get(f"{PREFIX}{name.upper()}") or (field.default if field else None)
        return None if text is None else float(text)

    @property
    def extraction(self) -> Calibration:
        names = ("extractive_score_low", "extractive_score_high", LEAST_SUPPORT)
        return Calibration(*(self.number(name) or 0.0 for name in names))


@dataclass(frozen=True, slots=True)
class Calibrating:
    """Where evidence comes from."""

    evidence: EvidenceService
    told: Told
    at_once: int
    output: Output

    async def sweeps(
        self, cases: Sequence[Case], asked: Sequence[CaseResult], space: str
    ) -> list[Sweep]:
        """One sweep a threshold that decides in this suite; `space` is that of retrieve's scores.

        Raises InvalidInput where there are too few cases of a kind, and what the stages raise.
        """
        if any(answer.mode == GENERATED for case in asked for answer in case.answers):
            supports = [_supported(case) for case in asked]
            found = [self._sweep(FLOOR, "support", supports)]
        else:
            found = [self._sweep(LEAST_SUPPORT, "support", await self._quoted(cases))]
        scores = [_scored(case, case.retrieved) for case in asked if case.retrieved]
        return [*found, self._sweep(THRESHOLD, space, scores)] if scores else found

    def _sweep(self, setting: str, space: str, evidence: Sequence[Evidence]) -> Sweep:
        variable = f"{PREFIX}{setting.upper()}"
        return sweep(variable, space, evidence, self.told.number(setting))

    async def _quoted(self, cases: Sequence[Case]) -> list[Evidence]:
        """The most support at which generate's own rules still quote something, for every case."""
        found: dict[str, Evidence] = {}

        async def one(case: Case) -> None:
            task = await patiently(lambda: self.evidence.task(case, Search()))
            value = await critical(partial(_is_quoted, task, self.told.extraction), low=LEAST)
            found[case.id] = Evidence(case.id, case.expected is Expected.ANSWERED, value)
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
