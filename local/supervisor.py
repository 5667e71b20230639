"""Starts the parts tier by tier, restarts none silently, ends all in reverse order."""

import asyncio
import signal
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from chassis.settings import EXIT_BAD_SETTINGS
from local import private
from local.child import Child, Part
from local.failures import GaveUp, NotReady, Refused


@dataclass(frozen=True, slots=True)
class Policy:
    """How patient the supervisor is; times in seconds.

    `grace` lies between SIGTERM and SIGKILL. A part is restarted at most `restarts` times within
    `window`; the pause before a restart starts at `first_pause` and doubles with each of those.
    """

    grace: float = 15.0
    restarts: int = 5
    window: float = 60.0
    first_pause: float = 0.2


class State(Enum):
    """What happened to a part."""

    READY = "ready"
    DIED = "died"
    UNREADY = "not ready in time"
    RESTARTING = "restarting"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class Event:
    """One line for the person who watches. `seconds` is the age of the part's process."""

    name: str
    port: int
    state: State
    seconds: float = 0.0
    detail: str = ""


Report = Callable[[Event], None]


@dataclass(slots=True)
class _Kept:
    """A part that runs, and when it was restarted lately."""

    child: Child
    restarts: deque[float] = field(default_factory=deque)


class Supervisor:
    """`tiers` start one after the other, the parts of one tier together.

    `folder` holds the logs. `report` is called for every change.
    """

    def __init__(
        self, tiers: Sequence[Sequence[Part]], folder: Path, report: Report, policy: Policy
    ) -> None:
        self._tiers = tiers
        self._folder = folder
        self._report = report
        self._policy = policy
        self._kept: dict[str, _Kept] = {}

    @property
    def pids(self) -> dict[str, int]:
        """Process id of each part that was started."""
        return {name: kept.child.pid for name, kept in self._kept.items()}

    async def start(self) -> None:
        """Start all and wait until they answer.

        After ending what was started raises Refused for a wrong setting, NotReady for the rest.
        """
        private.folder(self._folder)
        complete = False
        try:
            for tier in self._tiers:
                for part in tier:
                    self._kept[part.name] = _Kept(await self._spawned(part))
                await _all_or_first_failure(self._await_ready(part) for part in tier)
            complete = True
        finally:
            if not complete:
                await self.stop()

    async def watch(self) -> None:
        """Restart what dies, until cancelled. Raises GaveUp when a part dies again and again."""
        await _all_or_first_failure(self._keep(part) for tier in self._tiers for part in tier)

    async def stop(self) -> None:
        """End every part, the last tier first. No part is left when this returns."""
        for tier in reversed(self._tiers):
            async with asyncio.TaskGroup() as group:
                for part in tier:
                    if part.name in self._kept:
                        group.create_task(self._end(self._kept[part.name].child))

    async def kill(self) -> None:
        """End every part at once."""
        for kept in self._kept.values():
            await kept.child.kill()

    async def _spawned(self, part: Part) -> Child:
        return await Child.spawn(part, self._folder / f"{part.name}.log")

    async def _await_ready(self, part: Part) -> None:
        child = self._kept[part.name].child
        if not await child.ready():
            is_set_wrong = child.code == EXIT_BAD_SETTINGS or child.mismatch()
            kind = Refused if is_set_wrong else NotReady
            raise kind(f"{part.name}: {self._epitaph(child)}")
        self._tell(child, State.READY)

    async def _keep(self, part: Part) -> None:
        kept = self._kept[part.name]
        while True:
            await kept.child.ended()
            self._tell(kept.child, State.DIED, self._epitaph(kept.child))
            await asyncio.sleep(self._pause(kept))
            counted = f"restart {len(kept.restarts)} of at most {self._policy.restarts}"
            self._tell(kept.child, State.RESTARTING, counted)
            kept.child = await self._spawned(part)
            if await kept.child.ready():
                self._tell(kept.child, State.READY)
            elif kept.child.code is None:
                self._tell(kept.child, State.UNREADY, self._epitaph(kept.child))
                await kept.child.kill()

    def _pause(self, kept: _Kept) -> float:
        """Seconds to wait before this restart, which is counted. Raises GaveUp after too many."""
        now = time.monotonic()
        while kept.restarts and kept.restarts[0] < now - self._policy.window:
            kept.restarts.popleft()
        if len(kept.restarts) >= self._policy.restarts:
            raise GaveUp(
                f"{kept.child.part.name} died again after {self._policy.restarts} restarts within"
                f" {self._policy.window:g} s: {self._epitaph(kept.child)}"
            )
        kept.restarts.append(now)
        return self._policy.first_pause * 2.0 ** (len(kept.restarts) - 1)

    async def _end(self, child: Child) -> None:
        if child.code is not None:
            return
        await child.stop(self._policy.grace)
        self._tell(child, State.STOPPED)

    def _epitaph(self, child: Child) -> str:
        """What is known of a child that ended or did not become ready, in one line."""
        words = "" if child.mismatch() else child.last_words()
        said = f", its last line: {words}" if words else ""
        return f"{_ending(child)}{said} (log: {child.log})"

    def _tell(self, child: Child, state: State, detail: str = "") -> None:
        seconds = time.monotonic() - child.began
        self._report(Event(child.part.name, child.part.port, state, seconds, detail))


def _ending(child: Child) -> str:
    if child.code is None:
        return child.mismatch() or f"not ready within {child.part.ready_within:g} s"
    if child.code < 0:
        return f"killed by {signal.Signals(-child.code).name}"
    return f"ended with exit code {child.code}"


async def _all_or_first_failure(work: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Await all. The first exception ends the others and is raised."""
    tasks = [asyncio.create_task(one) for one in work]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
