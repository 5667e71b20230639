"""`sluice reindex`: another embedding profile or chunking, filled beside the old and then switched.

The settings of the environment say what the new collection is made with. An ingest process of our
own fills it while the suite goes on with the old one.
"""

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from cli import exits, ingest, ingest_service
from cli.addresses import INGEST_VARIABLE
from cli.identity import Token
from cli.output import Output
from cli.sync import Plan
from local import profile, state
from local.child import Child
from local.failures import NotReady, Refused
from local.ports import LOOPBACK, free
from local.state import RunningSuite
from local.suite import environment, part

PART = "ingest"
LOG = "reindex.log"
GRACE = 10.0  # seconds that the process gets to end


@dataclass(frozen=True, slots=True)
class Switch:
    """When and how readers are moved."""

    allow_missing: bool
    drop_previous: bool


async def run(
    data: Path, paths: Sequence[Path], switch: Switch, token: Token, output: Output
) -> int:
    """Fill and switch. Exit code 1, and no switch, when a document was refused."""
    async with _stage(data) as address:
        runs = [
            await ingest.ingested(
                path,
                Plan(ingest.default_source(path), retire=path.is_dir()),
                address,
                token,
                output,
            )
            for path in paths
        ]
        refused = sum(len(one.report.refused) for one in runs)
        if refused:
            output.line("Nothing was switched: mend the refused documents first.", style="bold red")
            output.document({"switched": False, "refused": refused})
            return exits.INCOMPLETE
        async with ingest_service.connected(address, token) as service:
            now, before = await service.switch(
                allow_missing=switch.allow_missing, drop_previous=switch.drop_previous
            )
    output.line(f"Readers use {now} now{f', {before} before' if before else ''}.", style="bold")
    output.line("Start ingest and retrieve anew with the settings that this command had.")
    output.document({"switched": True, "current": now, "previous": before})
    return exits.OK


@asynccontextmanager
async def _stage(data: Path) -> AsyncIterator[str]:
    """Address of an ingest process that reindexes: the one that is named, or one of our own."""
    said = os.environ.get(INGEST_VARIABLE, "")
    if said:
        yield said.removeprefix("dns:///")
        return
    suite = state.read(data)
    if suite is None:
        raise Refused(
            f"no suite runs on {data}: start it with `sluice up`, or name an ingest process that"
            f" has SLUICE_REINDEX=true in {INGEST_VARIABLE}"
        )
    ports = {**suite.ports, PART: free(1)[0]}
    child = await _started(data, suite, ports)
    try:
        if not await child.ready():
            raise NotReady(f"the ingest process did not get ready: {child.last_words()}")
        yield f"{LOOPBACK}:{ports[PART]}"
    finally:
        await child.stop(GRACE)


async def _started(data: Path, suite: RunningSuite, ports: dict[str, int]) -> Child:
    told = profile.load(suite.profile, os.environ)
    settings = {**environment(data, ports, told), "SLUICE_REINDEX": "true"}
    return await Child.spawn(part(PART, data, ports, settings), data / "logs" / LOG)
