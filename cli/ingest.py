"""`sluice ingest`: a folder goes in, with a summary and the refusals."""

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from cli import exits, folder, ingest_service
from cli.identity import Token
from cli.output import Output
from cli.progress import progress
from cli.sync import Plan, Report, sync


def default_source(path: Path) -> str:
    """Name of the folder, or of the folder that holds the file."""
    there = path.resolve()
    return (there if there.is_dir() else there.parent).name or "root"


@dataclass(frozen=True, slots=True)
class Ingested:
    """What a sync did, and how long it took in seconds."""

    source: str
    report: Report
    skipped: Mapping[str, int]
    seconds: float

    @property
    def code(self) -> int:
        return exits.INCOMPLETE if self.report.refused else exits.OK


async def run(path: Path, plan: Plan, address: str, token: Token, output: Output) -> int:
    """Sync a path and show what happened. Exit code 1 when documents were refused."""
    done = await ingested(path, plan, address, token, output)
    about = {"source": done.source, "skipped": dict(done.skipped), "seconds": done.seconds}
    output.document({**about, **asdict(done.report)})
    return done.code


async def ingested(path: Path, plan: Plan, address: str, token: Token, output: Output) -> Ingested:
    """Sync a path and show it to people only."""
    found = folder.walk(path)
    began = time.monotonic()
    async with ingest_service.connected(address, token) as index:
        with progress(f"ingest {plan.source}", len(found.files), shown=not output.as_json) as step:
            report = await sync(index, found, plan, step, step.say)
    seconds = round(time.monotonic() - began, 3)
    show(output, report, plan.source, seconds)
    show_skipped(output, found.skipped)
    return Ingested(plan.source, report, found.skipped, seconds)


def show(output: Output, report: Report, source: str, seconds: float) -> None:
    refused = [(one.document_id, one.line, one.reason) for one in report.refused]
    output.table("refused", ("document", "line", "reason"), refused)
    taken = [(name, before) for name, before in sorted(report.taken_over.items())]
    output.table("taken over", ("document", "from source"), taken)
    output.table("retired", ("document",), [(one,) for one in report.retired])
    output.line(
        f"{source}: {len(report.added)} added, {len(report.updated)} updated,"
        f" {len(report.unchanged)} unchanged, {len(report.retired)} retired,"
        f" {len(refused)} refused",
        style="bold",
    )
    rate = f" ({report.embedded / seconds:.1f} embedded/s)" if report.embedded else ""
    counts = f"{report.chunks} chunks sent, {report.embedded} embedded, {report.reused} reused"
    output.line(f"{counts} in {seconds:.1f} s{rate}")


def show_skipped(output: Output, skipped: Mapping[str, int]) -> None:
    if skipped:
        rules = ", ".join(f"{number} {rule}" for rule, number in skipped.items())
        output.line(f"skipped: {rules}", style="dim")
