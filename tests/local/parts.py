"""Parts that are tiny programs, and a listener to what their supervisor reports.

Run as a program it is a suite of two such parts: `python parts.py FOLDER PORT PORT`.
"""

import asyncio
import sys
from pathlib import Path

from cli.up import hold
from local import ports
from local.child import Part
from local.readiness import http_ready
from local.run import Run
from local.supervisor import Event, Policy, State

# Answers every GET with 200, says so in its log, and ends by itself after so many answers.
PROGRAM = """
import http.server, sys
name, port, answers = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
    def log_message(self, *words):
        pass
server = http.server.HTTPServer(("127.0.0.1", port), Answer)
print(f"{name} listens", flush=True)
for _ in range(answers):
    server.handle_request()
print('{"event": "worn_out", "level": "error", "answers": %d}' % answers, flush=True)
sys.exit(7)
"""
DEAF = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);" + PROGRAM
SILENT = "import time; print('thinking', flush=True); time.sleep(60)"


def part(
    name: str,
    port: int = 0,
    *,
    program: str = PROGRAM,
    answers: int = 1_000,
    ready_within: float = 20,
    nice: int = 0,
) -> Part:
    port = port or ports.free(1)[0]
    return Part(
        name=name,
        command=(sys.executable, "-S", "-c", program, name, str(port), str(answers)),
        environment={},
        port=port,
        probe=http_ready(port),
        ready_within=ready_within,
        nice=nice,
    )


class Told:
    """What was reported, and a way to wait for more."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._new = asyncio.Event()

    def __call__(self, event: Event) -> None:
        self.events.append(event)
        self._new.set()

    def states(self, name: str) -> list[State]:
        return [event.state for event in self.events if event.name == name]

    def details(self, state: State) -> list[str]:
        return [event.detail for event in self.events if event.state is state]

    async def until(self, name: str, *states: State) -> None:
        """Wait until the part went through exactly these states."""
        async with asyncio.timeout(20):
            while self.states(name) != list(states):
                self._new.clear()
                await self._new.wait()


def run(folder: Path, first: int, second: int) -> Run:
    return Run(
        folder,
        profile="tiny",
        ports={"models": first, "gateway": second},
        tiers=[[part("models", first, nice=3)], [part("gateway", second)]],
        report=lambda _event: None,
        policy=Policy(),
    )


if __name__ == "__main__":
    suite = run(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
    sys.exit(asyncio.run(hold(suite, lambda: print("ready", flush=True))))  # noqa: T201 - the test reads it
