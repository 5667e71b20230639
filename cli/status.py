"""`sluice status`: every process of the suite, ready or not, and what the index holds."""

import asyncio
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

from chassis.errors import SluiceError
from cli import addresses, exits, ingest_service
from cli.exits import Unreachable
from cli.identity import Token
from cli.output import Output
from local import state
from local.ports import LOOPBACK, OPTIONAL, is_free
from local.state import RunningSuite
from local.suite import probe

SHOWN = (
    *("redis", "jobs", "qdrant", "models", "llm"),
    *("ingest", "retrieve", "assemble", "generate", "gateway", "worker"),
)


@dataclass(frozen=True, slots=True)
class PartStatus:
    """`state` is ready, not ready, or no answer."""

    name: str
    port: int
    pid: int
    state: str


@dataclass(frozen=True, slots=True)
class Holdings:
    """What the index holds for the tenant."""

    documents: int
    chunks: int
    sources: dict[str, int]


async def run(
    data: Path, ports: Mapping[str, int], ingest: str, token: Token, output: Output
) -> int:
    """Show the parts. Exit code 1 when one is not ready. Raises Unreachable when none answers."""
    suite = state.read(data)
    pids = {part.name: part.pid for part in suite.parts} if suite else {}
    # What not every profile has is missed only where a suite is known that has it.
    names = [name for name in SHOWN if name in (ports if suite else ports.keys() - OPTIONAL)]
    parts = await asyncio.gather(*(_status(name, ports[name], pids.get(name, 0)) for name in names))
    if all(part.state == "no answer" for part in parts):
        raise Unreachable(f"{LOOPBACK}:{ports['gateway']}")
    holdings = await _holdings(ingest, token)
    _show(output, suite, parts, holdings)
    output.document(
        {
            "version": version("sluice"),
            "profile": suite.profile if suite else None,
            "parts": [asdict(part) for part in parts],
            "index": asdict(holdings) if holdings else None,
        }
    )
    ready = all(part.state == "ready" for part in parts)
    return exits.OK if ready else exits.INCOMPLETE


async def _status(name: str, port: int, pid: int) -> PartStatus:
    if await probe(name, port, addresses.certificates())():
        return PartStatus(name, port, pid, "ready")
    return PartStatus(name, port, pid, "no answer" if is_free(port) else "not ready")


async def _holdings(ingest: str, token: Token) -> Holdings | None:
    """None while ingest cannot say."""
    try:
        async with ingest_service.connected(ingest, token) as service:
            documents = await service.documents()
    except SluiceError:
        return None
    sources: dict[str, int] = {}
    for document in documents:
        sources[document.source] = sources.get(document.source, 0) + 1
    return Holdings(len(documents), sum(document.chunks for document in documents), sources)


def _show(
    output: Output,
    suite: RunningSuite | None,
    parts: list[PartStatus],
    holdings: Holdings | None,
) -> None:
    rows = [(part.name, part.port, part.pid or "", part.state) for part in parts]
    output.table("processes", ("name", "port", "pid", "state"), rows)
    profile = f", profile {suite.profile}, {suite.url}" if suite else ""
    output.line(f"sluice {version('sluice')}{profile}")
    if holdings is None:
        output.line("the index: ingest does not answer", style="yellow")
        return
    sources = ", ".join(f"{name} ({number})" for name, number in holdings.sources.items())
    about = f"; sources: {sources}" if sources else ""
    output.line(f"the index: {holdings.documents} documents, {holdings.chunks} chunks{about}")
