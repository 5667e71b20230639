"""Processes that draw on pools, several at once and one test after the other."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.capacity.attempts import Event, Plan

STARTS_WITHIN = 60.0  # seconds, on a machine that is busy


def start(*words: str) -> subprocess.Popen[str]:
    program = str(Path(__file__).with_name("attempts.py"))
    return subprocess.Popen(
        [sys.executable, program, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    )


async def line(process: subprocess.Popen[str], seconds: float = 0) -> str:
    assert process.stdout is not None
    read = asyncio.to_thread(process.stdout.readline)
    return await asyncio.wait_for(read, seconds + STARTS_WITHIN)


class Crew:
    """Its processes are started when they are first needed."""

    def __init__(self) -> None:
        self.processes: list[subprocess.Popen[str]] = []

    async def begin(self, plans: Sequence[Plan]) -> None:
        """All of them are at work."""
        while len(self.processes) < len(plans):
            self.processes.append(start("work"))
        for process, plan in zip(self.processes, plans, strict=False):
            assert process.stdin is not None
            process.stdin.write(plan.line())
        told = [await line(process) for process in self.processes[: len(plans)]]
        assert told == ["begun\n"] * len(plans)

    async def finish(self, plans: Sequence[Plan]) -> list[Event]:
        """What all of them did, under one clock: that of the machine."""
        at_work = self.processes[: len(plans)]
        told = [await line(process, plans[0].seconds) for process in at_work]
        return [tuple(event) for events in told for event in json.loads(events)]

    async def run(self, plans: Sequence[Plan]) -> list[Event]:
        await self.begin(plans)
        return await self.finish(plans)

    def end(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe:
                    pipe.close()
