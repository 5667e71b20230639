"""One process of the suite: started tethered, logged to its file, ended for certain."""

import asyncio
import contextlib
import json
import os
import signal
import sys
import time
from asyncio.subprocess import Process
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from local import private, tether
from local.readiness import Probe

PROBE_EVERY = 0.05  # seconds
TAIL_BYTES = 8_192
# The reason in a process's log that no waiting mends: the index was made with other settings.
MISMATCH = "COLLECTION_MISMATCH"


@dataclass(frozen=True, slots=True)
class Part:
    """What to run and how to tell that it is ready. `ready_within` is in seconds.

    `nice` is how far it stands back, from 0 to 19, where processors are short.
    """

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    port: int
    probe: Probe
    ready_within: float
    nice: int = 0


class Child:
    """A part's process. Its output is appended to `log`, from byte `start` on."""

    def __init__(self, part: Part, log: Path, start: int, process: Process) -> None:
        self.part = part
        self.log = log
        self.began = time.monotonic()
        self._start = start
        self._process = process

    @classmethod
    async def spawn(cls, part: Part, log: Path) -> "Child":
        with private.appending(log) as output:
            start = output.tell()
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-S", tether.__file__, str(os.getpid()), str(part.nice)),
                *part.command,
                env=dict(part.environment),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                # Ctrl-C reaches the whole foreground group; the order of ending is ours to choose.
                # Not a session: Linux shares processors out by session before it looks at `nice`.
                process_group=0,
                umask=private.UMASK,
            )
        return cls(part, log, start, process)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def code(self) -> int | None:
        """Its exit code, minus the number when a signal ended it; None while it runs."""
        return self._process.returncode

    async def ended(self) -> None:
        await self._process.wait()

    async def ready(self) -> bool:
        """True once it answers.

        False when it ended, stayed unready for `ready_within`, or its index is another one's.
        """
        try:
            async with asyncio.timeout(self.part.ready_within):
                while self.code is None:
                    if await self.part.probe():
                        return True
                    if self.mismatch():
                        return False
                    await asyncio.sleep(PROBE_EVERY)
        except TimeoutError:
            pass
        return False

    async def stop(self, grace: float) -> None:
        """SIGTERM, then SIGKILL once `grace` seconds are over. Returns when it has ended."""
        try:
            self._send(signal.SIGTERM)
            async with asyncio.timeout(grace):
                await self._process.wait()
        except TimeoutError:
            await self.kill()

    async def kill(self) -> None:
        self._send(signal.SIGKILL)
        await self._process.wait()

    def _send(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)

    def last_words(self) -> str:
        """The last line of its log in a readable form; empty when it wrote nothing."""
        lines = self._tail()
        return readable(lines[-1]) if lines else ""

    def mismatch(self) -> str:
        """How its settings and its index differ, in the process's own words; empty if not."""
        events = (_event(line) for line in self._tail(self._start) if MISMATCH in line)
        problems = (event.get("problem", "") for event in events)
        return next((str(problem) for problem in problems if problem), "")

    def _tail(self, start: int = 0) -> list[str]:
        with self.log.open("rb") as file:
            file.seek(max(start, self.log.stat().st_size - TAIL_BYTES))
            return file.read().decode(errors="replace").strip().splitlines()


def _event(line: str) -> Mapping[str, object]:
    """The fields of a log line; none where it is no event."""
    try:
        event = json.loads(line)
    except ValueError:
        return {}
    return event if isinstance(event, dict) and "event" in event else {}


def readable(line: str) -> str:
    """A log line for people: the event and its fields, without time, level and process."""
    event = _event(line)
    if not event:
        return line.strip()
    cause = str(event.get("exception", "")).strip().splitlines()[-1:]
    noise = {"event", "time", "timestamp", "level", "process", "exception", "trace_id", "span_id"}
    fields = [f"{name}={value}" for name, value in event.items() if name not in noise]
    return " ".join([str(event["event"]), *fields, *cause])
