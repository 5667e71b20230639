"""`sluice up`: hold a suite until somebody asks it to end."""

import asyncio
import signal
from collections.abc import Callable
from dataclasses import asdict

from cli import exits
from cli.output import Output
from local.run import Run
from local.supervisor import Event, State

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
STYLES = {
    State.READY: "green",
    State.DIED: "bold red",
    State.UNREADY: "bold red",
    State.RESTARTING: "yellow",
    State.STOPPED: "dim",
}


def told(output: Output, event: Event) -> None:
    """One line a change of a process."""
    said = f"{event.seconds:.1f} s" if event.state is State.READY else event.detail
    line = f"{event.name:<9} {event.port:>5}  {event.state.value}  {said}"
    output.line(line.rstrip(), style=STYLES[event.state])


async def run(suite: Run, output: Output) -> int:
    """Start the suite, say where it is, hold it."""

    def ready() -> None:
        output.line(f"The suite runs at {suite.url}; its logs are in {suite.logs}.", style="bold")
        output.line("Ctrl-C stops it.")
        output.document(asdict(suite.running()))

    return await hold(suite, ready)


async def hold(run: Run, ready: Callable[[], None]) -> int:
    """Run until Ctrl-C, SIGTERM or a closed terminal, then end everything; 0.

    A second signal ends every process at once. Raises what the run raises.
    """
    holding = asyncio.current_task()
    killing: list[asyncio.Task[None]] = []

    def asked() -> None:
        if asking.is_set():
            killing.append(asyncio.create_task(run.kill()))
        elif holding:
            asking.set()
            holding.cancel()

    asking = asyncio.Event()
    for name in SIGNALS:
        asyncio.get_running_loop().add_signal_handler(name, asked)
    try:
        async with run:
            ready()
            await run.finished()
    except asyncio.CancelledError:
        if not asking.is_set():
            raise
    await asyncio.gather(*killing)
    return exits.OK
