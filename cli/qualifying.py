"""Puts questions to one configured candidate alone, by generate's own rules, and writes its report.

The candidate is called from here, within its pool, so that the suite needs no change and nobody
else is answered by it. Nothing stands in for it: no cache, no other candidate, no quotation.
"""

import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from chassis import logs
from chassis.errors import InvalidInput
from chassis.identity import AccessLevel
from cli import suite_settings
from cli.evidence_service import EvidenceService, Search
from evals.case import Case
from evals.gates import Judged
from evals.gold import Gold
from evals.observed import Answer, Mark, Source
from evals.qualification import (
    Place,
    Qualification,
    Selection,
    check_gates,
    conclude,
    counts,
    select,
    shared,
)
from evals.result import CaseResult
from evals.results import Results
from gateway import wire as outcomes
from providers.chat import ChatClient
from providers.endpoint import Endpoint
from services.generate import qualification as standard
from services.generate import wire
from services.generate.candidate import Candidate
from services.generate.pipeline import Pipeline, Policy
from services.generate.result import Result
from services.generate.settings import GenerateSettings
from services.generate.task import Task

PRIMARY = "primary"
# Seconds that a question waits for its turn: a full pool says nothing about the model.
PATIENCE = 120.0


@dataclass(frozen=True, slots=True)
class Asked:
    """The candidate, asked as the gateway would ask the stage."""

    evidence: EvidenceService
    pipeline: Pipeline

    async def ask(self, case: Case) -> Answer:
        began = time.perf_counter()
        task = await self.evidence.task(case, Search())
        prepared = time.perf_counter()
        result = await self.pipeline.answer(task)
        ended = time.perf_counter()
        return _answer(task, result, ended - began, {"generate": ended - prepared})


@dataclass(frozen=True, slots=True)
class Tried:
    """A candidate as the suite's settings have it, under the suite's policy."""

    endpoint: Endpoint
    settings: GenerateSettings

    @classmethod
    def named(cls, name: str, data: Path) -> Self:
        """The candidate of that id, in the suite on the folder. Raises InvalidInput without one."""
        settings = suite_settings.generate(data)
        endpoints = {each.endpoint.id: each.endpoint for each in settings.listed()}
        if settings.answer_mode == "generated":
            endpoints[PRIMARY] = settings.answer_endpoint()
        if name not in endpoints:
            known = ", ".join(sorted(endpoints)) or "none"
            raise InvalidInput(f"no candidate is {name!r}; configured: {known}", field="qualify")
        return cls(endpoints[name], settings)

    @property
    def place(self) -> Place:
        return _place(self.endpoint)

    def shared(self) -> list[str]:
        """What it depends on together with the primary, where it is another one."""
        if self.endpoint.id == PRIMARY or self.settings.answer_mode != "generated":
            return []
        return shared(self.place, _place(self.settings.answer_endpoint()))

    @asynccontextmanager
    async def asked(self, evidence: EvidenceService) -> AsyncIterator[Asked]:
        """The candidate while it is asked. Raises Misconfigured for impossible credentials."""
        # Generate's own events would stand between the figures, or in the JSON document.
        logs.start("evaluation", "error")
        endpoint, settings = self.endpoint, self.settings
        async with AsyncExitStack() as held:
            bucket = settings.bucket(endpoint.pool, endpoint.limits)
            held.push_async_callback(bucket.close)
            chat = ChatClient.of(endpoint, bucket, patience=PATIENCE)
            held.push_async_callback(chat.close)
            policy = Policy(
                settings.budget,
                limit=settings.generate_seconds,
                floor=settings.answer_support_floor,
                on_invalid=settings.answer_invalid_output,
            )
            yield Asked(evidence, Pipeline.of([Candidate.of(chat, endpoint)], policy))


@dataclass(frozen=True, slots=True)
class Candidacy:
    """What a candidate is tried on: the cases, and the levels whose documents it may see."""

    tried: Tried
    levels: Sequence[AccessLevel]
    selection: Selection

    @classmethod
    def of(cls, name: str, levels: Sequence[AccessLevel], gold: Gold, data: Path) -> Self:
        """Raises InvalidInput for what nobody could be tried on."""
        if not levels:
            raise InvalidInput(
                "--levels names whose documents the candidate may see, such as public,team",
                field="levels",
            )
        check_gates(gold.gates)
        return cls(Tried.named(name, data), levels, select(gold.cases, levels))

    def concluded(self, cases: Sequence[CaseResult], gates: Sequence[Judged]) -> Qualification:
        """How the candidate did."""
        served = sorted({answer.model for case in cases for answer in case.answers} - {""})
        passed, mode, reasons = conclude(gates, served)
        return Qualification(
            candidate=self.tried.endpoint.id,
            place=self.tried.place,
            fingerprint=standard.fingerprint(self.tried.endpoint),
            served_models=served,
            levels=[level.label for level in self.levels],
            passed=passed,
            mode=mode,
            reasons=reasons,
            shared=self.tried.shared(),
            counts=counts(cases),
            development=self.selection.development,
            above_levels=self.selection.above_levels,
        )

    def report(self, found: Qualification, name: str, run: Results) -> str:
        """The report that generate holds the candidate to; empty where no model ever served.

        `name` is the evaluation's.
        """
        if not found.served_models:
            return ""
        floor = self.tried.settings.answer_support_floor
        told = standard.Report.model_validate(
            {
                "format": 1,
                "report_id": name,
                "fingerprint": found.fingerprint,
                "model": found.place.model,
                "host": found.place.host,
                "served_model": ", ".join(found.served_models),
                "instructions_versions": run.settings.instructions_versions,
                "schema_version": standard.SCHEMA_VERSION,
                "validation_version": standard.validation_version(floor),
                "levels": found.levels,
                "mode": found.mode,
                "passed": found.passed,
                "evaluated_at": run.date,
            }
        )
        return told.model_dump_json(indent=2) + "\n"


def _place(endpoint: Endpoint) -> Place:
    return Place(endpoint.model, standard.host(endpoint.base_url), endpoint.pool)


def _answer(task: Task, result: Result, seconds: float, stages: Mapping[str, float]) -> Answer:
    """The answer as the gateway would have told it."""
    outcome = outcomes.outcome_of(wire.response(result).outcome)
    labels = {citation.label for citation in result.citations}
    sources = [source for source in task.sources if source.label in labels]
    return Answer(
        mode=outcome.mode,
        reason=outcome.reason,
        acceptance=outcome.acceptance or "",
        text=result.text,
        marks=tuple(
            Mark(each.label, each.start, each.end, each.support) for each in result.citations
        ),
        sources=tuple(
            Source(each.label, each.document, each.text, each.level.label) for each in sources
        ),
        seconds=seconds,
        stages=stages,
        input_tokens=result.spent.input_tokens,
        output_tokens=result.spent.output_tokens,
        model=result.spent.model,
        instructions=task.instructions_version,
        candidate=result.provenance.candidate,
        cached=False,
        switched=False,
        shown="\n".join([result.text, *(each.text for each in sources)]),
    )
