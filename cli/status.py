"""`sluice status`: every process, ready or not, what the index holds, what capacity is left."""

import asyncio
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from capacity.inspection import inspect
from chassis.errors import SluiceError
from cli import addresses, exits, gateway_service, ingest_service
from cli.exits import Unreachable
from cli.identity import Token
from cli.output import Output
from local import state
from local.ports import LOOPBACK, OPTIONAL, is_free
from local.state import RunningSuite
from local.suite import STORES, probe

SHOWN = (
    *("redis", "jobs", "qdrant", "models", "llm"),
    *("ingest", "retrieve", "assemble", "generate", "gateway", "worker"),
)
INSPECTION_LIMIT = 2.0  # seconds


@dataclass(frozen=True, slots=True)
class PartStatus:
    """`state` is ready, not ready, or no answer."""

    name: str
    port: int
    pid: int
    state: str
    version: str


@dataclass(frozen=True, slots=True)
class Holdings:
    """What the index holds for the tenant."""

    documents: int
    chunks: int
    sources: dict[str, int]


@dataclass(frozen=True, slots=True)
class Asked:
    """Where ingest and the gateway are, and the tokens that they take."""

    ingest: str
    ingest_token: Token
    gateway: str
    gateway_token: Token


async def run(data: Path, ports: Mapping[str, int], asked: Asked, output: Output) -> int:
    """Show the parts. Exit code 1 when one is not ready. Raises Unreachable when none answers."""
    suite = state.read(data)
    pids = {part.name: part.pid for part in suite.parts} if suite else {}
    # What not every profile has is missed only where a suite is known that has it.
    names = [name for name in SHOWN if name in (ports if suite else ports.keys() - OPTIONAL)]
    ours = suite.version if suite else ""
    parts = await asyncio.gather(
        *(_status(name, ports[name], pids.get(name, 0), ours) for name in names)
    )
    if all(part.state == "no answer" for part in parts):
        raise Unreachable(f"{LOOPBACK}:{ports['gateway']}")
    holdings = await _holdings(asked.ingest, asked.ingest_token)
    levels = await _levels(asked.gateway, asked.gateway_token)
    _show(output, suite, parts, holdings)
    output.line(_capacity(levels), style="" if levels else "yellow")
    output.document(
        {
            "version": version("sluice"),
            "profile": suite.profile if suite else None,
            "parts": [asdict(part) for part in parts],
            "index": asdict(holdings) if holdings else None,
            "capacity": levels,
        }
    )
    ready = all(part.state == "ready" for part in parts)
    return exits.OK if ready else exits.INCOMPLETE


async def _status(name: str, port: int, pid: int, ours: str) -> PartStatus:
    if not await probe(name, port, addresses.certificates())():
        return PartStatus(name, port, pid, "no answer" if is_free(port) else "not ready", "")
    version_of = ours if name not in STORES else await _store_version(port)
    return PartStatus(name, port, pid, "ready", version_of)


async def _store_version(port: int) -> str:
    """Empty where the store tells it to nobody without a password."""
    try:
        return (await inspect(f"redis://{LOOPBACK}:{port}/0", INSPECTION_LIMIT)).version
    except SluiceError:
        return ""


async def _levels(url: str, token: Token) -> Mapping[str, Any] | None:
    """None while the gateway cannot say, or not to this person."""
    try:
        return await gateway_service.capacity(url, token())
    except SluiceError:
        return None


def _capacity(levels: Mapping[str, Any] | None) -> str:
    if levels is None:
        return "capacity: the gateway does not tell"
    gateway = levels["gateway"]
    said = [f"{gateway['in_flight']} of {gateway['max_in_flight']} seats taken"]
    for pool in levels["pools"]:
        requests = pool["pool"]["requests"]
        left = f"{requests['level']:,.0f} of {requests['size']:,.0f} calls left"
        said.append(f"{pool['name']} {pool['mode'].replace('_', ' ')}, {left}")
    return f"capacity: {'; '.join(said)}"


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
    rows = [(part.name, part.port, part.pid or "", part.state, part.version) for part in parts]
    output.table("processes", ("name", "port", "pid", "state", "version"), rows)
    profile = f", profile {suite.profile}, {suite.url}" if suite else ""
    output.line(f"sluice {version('sluice')}{profile}")
    if holdings is None:
        output.line("the index: ingest does not answer", style="yellow")
        return
    sources = ", ".join(f"{name} ({number})" for name, number in holdings.sources.items())
    about = f"; sources: {sources}" if sources else ""
    output.line(f"the index: {holdings.documents} documents, {holdings.chunks} chunks{about}")
