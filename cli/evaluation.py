"""`sluice eval`: a gold set goes through the suite; figures, gates, a report."""

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from chassis.errors import InvalidInput
from chassis.identity import AccessLevel
from cli import addresses, code, evidence_service, exits, figures_shown, ingest_service
from cli.benchmark import bring_in
from cli.evidence_service import EvidenceService, Search
from cli.identity import Identity
from cli.output import Output
from cli.progress import progress
from cli.questioning import Asking, Gateway, Questioning, Stages
from evals import beir, calibration, comparison, corpus, figures, gates, gold, results
from evals.calibration import Evidence, Sweep
from evals.case import Case
from evals.corpus import Corpus
from evals.gold import Gold
from evals.observed import Document, Found
from evals.result import CaseResult
from evals.results import Results, Settings
from local import private

if TYPE_CHECKING:
    from cli.qualifying import Candidacy

EXAMPLES = Path(__file__).parents[1] / "examples" / "gold.yaml"
TENANT = "demo"


@dataclass(frozen=True, slots=True)
class Plan:
    """What to evaluate, and how. An empty `tenant` is the gold set's own.

    `qualify` names the candidate that is to be qualified, for documents of the `levels`.
    """

    path: Path
    stages: Stages
    search: Search
    repeat: int
    at_once: int
    out: Path
    tenant: str = ""
    baseline: Path | None = None
    gates: Path | None = None
    calibrate: bool = False
    bring_in: bool = False
    qualify: str = ""
    levels: tuple[AccessLevel, ...] = ()


async def run(plan: Plan, data: Path, output: Output) -> int:
    """Evaluate and show. Exit code 1 when a gate fails."""
    _check_libraries()
    gold_set = _read(plan)
    gates.check(gold_set)
    before = results.read(plan.baseline) if plan.baseline else None
    candidacy = _candidacy(plan, gold_set, data) if plan.qualify else None
    if plan.calibrate:
        calibration.check([Evidence(case.id, case.is_answerable, None) for case in gold_set.cases])
    tenant = plan.tenant or (gold_set.name if plan.path.is_dir() else TENANT)
    person = Identity("evaluation", tenant, AccessLevel.RESTRICTED)
    if plan.bring_in:
        target = addresses.ingest(data)
        await bring_in(plan.path, gold_set.name, target, person.for_ingest, output)
    documents = await _documents(addresses.ingest(data), person)
    corpus.check(gold_set, documents)
    evaluation = Evaluation(plan, data, gold_set, tenant, documents, output, candidacy)
    found = await evaluation.results(before)
    paths = _write(plan.out, found, evaluation)
    figures_shown.show(output, found, paths)
    output.document({**results.plain(found), "files": [str(path) for path in paths]})
    is_passed = found.qualification.passed if found.qualification else not gates.failed(found.gates)
    return exits.OK if is_passed else exits.INCOMPLETE


def _candidacy(plan: Plan, gold_set: Gold, data: Path) -> "Candidacy":
    if plan.calibrate:
        raise InvalidInput("--qualify and --calibrate are runs of their own", field="qualify")
    from cli.qualifying import Candidacy  # noqa: PLC0415 - the model's client is slow to import

    return Candidacy.of(plan.qualify, plan.levels, gold_set, data)


def _check_libraries() -> None:
    """Before the work, not after it."""
    missing = [name for name in ("jinja2", "matplotlib") if find_spec(name) is None]
    if missing:
        raise InvalidInput(
            f"the report needs {' and '.join(missing)}: install sluice[evals]", field="evals"
        )


def _read(plan: Plan) -> Gold:
    if plan.path.is_dir():
        if not beir.is_folder(plan.path):
            names = ", ".join(beir.FILES)
            raise InvalidInput(f"{plan.path} is no gold set: it lacks {names}", field="path")
        read = beir.read(plan.path)
    elif plan.bring_in:
        raise InvalidInput("--ingest is for folders that bring their corpus", field="ingest")
    else:
        read = gold.read(plan.path)
    return replace(read, gates=gold.read_gates(plan.gates)) if plan.gates else read


async def _documents(address: str, person: Identity) -> Corpus:
    """What the tenant's index holds, by id: what is eligible, whatever is returned."""
    async with ingest_service.connected(address, person.for_ingest) as service:
        listed = await service.documents()
    return {
        one.document_id: Document(
            id=one.document_id,
            content=one.content_hash,
            level=one.access_level,
            groups=one.groups,
            state=one.publication_state,
            chunks=one.chunks,
        )
        for one in listed
    }


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One run of a gold set over one tenant's documents."""

    plan: Plan
    data: Path
    gold: Gold
    tenant: str
    documents: Corpus
    output: Output
    candidacy: "Candidacy | None" = None

    @property
    def cases(self) -> Sequence[Case]:
        return self.candidacy.selection.cases if self.candidacy else self.gold.cases

    async def results(self, before: Results | None) -> Results:
        """Everything that is found. Raises what the stages and the scoring raise."""
        began, date = time.monotonic(), datetime.now(UTC).isoformat(timespec="seconds")
        targets = (addresses.stage(name, self.data) for name in ("retrieve", "assemble"))
        async with evidence_service.connected(*targets, tenant=self.tenant) as evidence:
            probe = await evidence.find(self.cases[0], self.plan.search, 1)
            for case in self.cases:
                corpus.check_version(case, probe.chunking_version)
            async with self._asking(evidence) as asking:
                asked = await self._asked(evidence, asking)
            sweeps = await self._sweeps(asked, evidence, probe) if self.plan.calibrate else []
        settings, groups = self._settings(probe, asked), figures.groups(asked)
        judged = gates.judge(self.gold.gates, asked, before.cases if before else None)
        side = results.side(date, settings, groups, asked)
        return Results(
            format=results.FORMAT,
            date=date,
            seconds=round(time.monotonic() - began, 3),
            settings=settings,
            groups=groups,
            outcomes=figures.outcomes(asked),
            gates=judged,
            comparison=comparison.compare(before.side, side) if before else None,
            calibration=sweeps,
            qualification=self.candidacy.concluded(asked, judged) if self.candidacy else None,
            cases=asked,
        )

    @asynccontextmanager
    async def _asking(self, evidence: EvidenceService) -> AsyncIterator[Asking]:
        """Whoever answers."""
        if self.candidacy is None:
            yield Gateway(addresses.gateway(self.data), self.tenant)
            return
        async with self.candidacy.tried.asked(evidence) as asked:
            yield asked

    async def _asked(self, evidence: EvidenceService, asking: Asking) -> list[CaseResult]:
        questioning = Questioning(
            evidence=evidence,
            asking=asking,
            documents=self.documents,
            search=self.plan.search,
            stages=self.plan.stages,
            repeat=self.plan.repeat,
            at_once=self.plan.at_once,
        )
        total = questioning.total(self.cases)
        title, shown = f"evaluate {self.gold.name}", not self.output.as_json
        with progress(title, total, shown=shown, unit="calls") as step:
            return await questioning.run(self.cases, step)

    async def _sweeps(
        self, asked: Sequence[CaseResult], evidence: EvidenceService, probe: Found
    ) -> list[Sweep]:
        from cli.calibrating import Calibrating  # noqa: PLC0415 - generate is slow to import

        calibrating = Calibrating(evidence, self.data, self.plan.at_once, self.output)
        return await calibrating.sweeps(self.cases, asked, probe.score_space)

    def _settings(self, probe: Found, asked: Sequence[CaseResult]) -> Settings:
        from cli import suite_settings  # noqa: PLC0415 - stages are slow to import

        answers = [answer for case in asked for answer in case.answers]
        search = self.plan.search
        return Settings(
            gold=self.gold.name,
            gold_digest=self.gold.digest,
            tenant=self.tenant,
            documents=len(self.documents),
            corpus_revision=corpus.revision(self.documents.values()),
            chunking_version=probe.chunking_version,
            embedding_profile=probe.embedding_profile,
            search_mode=search.mode or "default",
            diversity="default" if search.diversity is None else f"{search.diversity:g}",
            retrieval=suite_settings.retrieval(self.data),
            score_space=probe.score_space,
            instructions_versions=sorted({one.instructions for one in answers} - {""}),
            models=sorted({one.model for one in answers} - {""}),
            repeat=self.plan.repeat,
            code_version=code.release(),
            code_revision=code.revision(),
        )


def _write(folder: Path, found: Results, evaluation: Evaluation) -> list[Path]:
    """Results and report, for this person's eyes only: both hold texts of documents."""
    from evals import report  # noqa: PLC0415 - drawing takes half a second to import

    private.folder(folder)
    moment = found.date.partition("+")[0].replace(":", "").replace("-", "")
    name = f"{found.settings.gold}-{moment}"
    files = {f"{name}.json": results.to_json(found), f"{name}.html": report.page(found).encode()}
    if evaluation.candidacy and found.qualification:
        qualified = evaluation.candidacy.report(found.qualification, name, found)
        files[f"{name}-{found.qualification.candidate}.json"] = qualified.encode()
    written = [(folder / file, content) for file, content in files.items() if content]
    for path, content in written:
        path.touch(private.FILE)
        path.write_bytes(content)
    return [path for path, _ in written]
