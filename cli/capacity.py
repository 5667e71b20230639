"""`sluice capacity`: what is left of every allowance, once or live."""

import asyncio
import contextlib
import signal
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from chassis import errors
from cli import exits, gateway_service
from cli.identity import Token
from cli.output import Output, safe

REFRESH = 1.0  # seconds
MEMORY = 60  # snapshots that a history holds
BAR = 24  # characters
EIGHTHS = " ▏▎▍▌▋▊▉█"
HEIGHTS = "▁▂▃▄▅▆▇█"
LOW, VERY_LOW = 0.5, 0.2

Look = Callable[[], Awaitable[Mapping[str, Any]]]


@dataclass(slots=True)
class History:
    """What the live view remembers: a number a refresh, the last ones."""

    pools: dict[str, deque[float]] = field(default_factory=dict)
    in_flight: deque[float] = field(default_factory=lambda: deque(maxlen=MEMORY))
    refused: deque[float] = field(default_factory=lambda: deque(maxlen=MEMORY))
    refused_before: int | None = None

    def add(self, seen: Mapping[str, Any]) -> None:
        gateway = seen["gateway"]
        self.in_flight.append(gateway["in_flight"])
        refused = sum(gateway["refusals"].values())
        before = refused if self.refused_before is None else self.refused_before
        self.refused.append(max(0, refused - before))
        self.refused_before = refused
        for pool in seen["pools"]:
            kept = self.pools.setdefault(pool["name"], deque(maxlen=MEMORY))
            kept.append(sum(pool["in_flight"].values()))


async def run(url: str, token: Token, output: Output, *, watch: bool) -> int:
    """Show the levels; with `watch` until Ctrl-C. Raises SluiceErrors."""

    async def look() -> Mapping[str, Any]:
        return await gateway_service.capacity(url, token())

    seen, history = await look(), History()
    history.add(seen)
    if watch:
        await _watch(look, seen, history, output)
    else:
        output.people.print(view(seen, history))
        output.document(seen)
    return exits.OK


async def _watch(look: Look, seen: Mapping[str, Any], history: History, output: Output) -> None:
    stop = asyncio.Event()
    for name in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(name, stop.set)
    with Live(console=output.people, auto_refresh=False) as live:
        live.update(view(seen, history), refresh=True)
        while not await _within(stop, REFRESH):
            try:
                seen, problem = await look(), ""
                history.add(seen)
            except (errors.Unavailable, errors.DeadlineExceeded) as error:
                problem = error.message
            live.update(view(seen, history, problem), refresh=True)


async def _within(stop: asyncio.Event, seconds: float) -> bool:
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(stop.wait(), seconds)
    return stop.is_set()


def view(seen: Mapping[str, Any], history: History, problem: str = "") -> RenderableType:
    """The picture of one snapshot; `problem` says why it is an old one."""
    parts = [_gateway(seen["gateway"], history)]
    parts += [_pool(pool, history.pools.get(pool["name"], ())) for pool in seen["pools"]]
    if problem:
        parts.append(Text(safe(problem), style="bold red"))
    return Group(*parts)


def _gateway(gateway: Mapping[str, Any], history: History) -> RenderableType:
    grid = _grid("gateway", gateway["mode"])
    _add_places(grid, "here", gateway["in_flight"], gateway["max_in_flight"], history.in_flight)
    shared = gateway["shared_in_flight"]
    if shared is not None:
        _add_places(grid, "all gateways", shared, gateway["shared_max_in_flight"])
    if gateway["waiting"]:
        grid.add_row("waiting", "", str(gateway["waiting"]), "")
    reasons = ", ".join(f"{reason} {number}" for reason, number in gateway["refusals"].items())
    grid.add_row("refused", "", safe(reasons) or "none", sparkline(history.refused))
    return grid


def _pool(pool: Mapping[str, Any], history: Sequence[float]) -> RenderableType:
    grid = _grid(pool["name"], pool["mode"], _condition(pool))
    _add_level(grid, "requests", pool["pool"]["requests"])
    _add_level(grid, "tokens", pool["pool"]["tokens"])
    _add_level(grid, "batch requests", pool["batch"]["requests"])
    _add_level(grid, "batch tokens", pool["batch"]["tokens"])
    in_flight = pool["in_flight"]
    _add_places(grid, "in flight", sum(in_flight.values()), pool["pool"]["places"], history)
    grid.add_row("", "", ", ".join(f"{kind} {number}" for kind, number in in_flight.items()), "")
    return grid


def _condition(pool: Mapping[str, Any]) -> str:
    """What keeps a pool from flowing in full; empty when nothing does."""
    if pool["cooldown"]:
        return f"cools down for {pool['cooldown']:.1f} s after a throttle"
    if pool["opens_in"]:
        return f"opens {pool['opens_in']:.1f} s after its first use"
    if pool["ramp"] < 1:
        return f"{pool['ramp']:.0%} of the refill flows after a throttle"
    return f"{pool['waiting']} wait for a start" if pool["waiting"] else ""


def _grid(name: str, mode: str, condition: str = "") -> Table:
    said = Text(f"{safe(name)}  ", style="bold")
    said.append(safe(mode).replace("_", " "), style="green" if mode == "shared" else "bold red")
    said.append(f"  {condition}" if condition else "", style="yellow")
    grid = Table.grid(padding=(0, 2))
    grid.title, grid.title_justify, grid.title_style = said, "left", ""
    for width in (14, BAR, None, None):
        grid.add_column(width=width, no_wrap=True)
    return grid


def _add_level(grid: Table, name: str, level: Mapping[str, float]) -> None:
    share = level["level"] / level["size"] if level["size"] else 0.0
    style = "red" if share < VERY_LOW else "yellow" if share < LOW else "green"
    numbers = f"{level['level']:,.0f} of {level['size']:,.0f} now, {level['limit']:,.0f} a minute"
    grid.add_row(name, Text(bar(share), style=style), numbers, "")


def _add_places(
    grid: Table, name: str, taken: int, places: int, history: Sequence[float] = ()
) -> None:
    share = taken / places if places else 1.0
    style = "red" if share > 1 - VERY_LOW else "yellow" if share > LOW else "cyan"
    grid.add_row(
        name, Text(bar(share), style=style), f"{taken:,} of {places:,}", sparkline(history)
    )


def bar(share: float, width: int = BAR) -> str:
    """A bar of `width` characters, filled to the share in steps of an eighth."""
    eighths = round(min(1.0, max(0.0, share)) * width * 8)
    full, rest = divmod(eighths, 8)
    return ("█" * full + EIGHTHS[rest] * bool(rest)).ljust(width, "·")


def sparkline(numbers: Sequence[float]) -> str:
    """A column a number, the largest one at full height."""
    most = max(numbers, default=0)
    steps = len(HEIGHTS) - 1
    return "".join(HEIGHTS[round(number / most * steps) if most else 0] for number in numbers)
