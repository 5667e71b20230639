"""A set of parts over one data folder: locked, watched, its state written down, ended whole."""

import asyncio
import contextlib
import os
import threading
from collections.abc import Coroutine, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from local import ports as port_numbers
from local import state
from local.child import Part
from local.ports import LOOPBACK
from local.state import RunningPart, RunningSuite
from local.supervisor import Event, Policy, Report, Supervisor

T = TypeVar("T")


class Run:
    """A context manager, sync or async. `ports` are by the names of local.ports.

    Entering raises Refused when the folder or a port is taken, NotReady when a part does not come
    up. While entered, what dies is restarted and reported.
    """

    def __init__(  # noqa: PLR0913 - what a run consists of
        self,
        data: Path,
        *,
        profile: str,
        ports: Mapping[str, int],
        tiers: Sequence[Sequence[Part]],
        report: Report,
        policy: Policy,
    ) -> None:
        self.ports = ports
        self.logs = data / "logs"
        self._data = data
        self._profile = profile
        self._report = report
        self._version = version("sluice")
        self._supervisor = Supervisor(tiers, self.logs, self._changed, policy)
        self._left = contextlib.ExitStack()
        self._watching: asyncio.Task[None] | None = None
        self._thread: _LoopThread | None = None

    @property
    def url(self) -> str:
        """Address of the gateway."""
        return f"http://{LOOPBACK}:{self.ports['gateway']}"

    @property
    def pids(self) -> Mapping[str, int]:
        """Process id of each part; a restart changes it."""
        return self._supervisor.pids

    async def finished(self) -> None:
        """Wait until it gives up by itself. Raises GaveUp."""
        if self._watching:
            await asyncio.shield(self._watching)

    async def kill(self) -> None:
        """End every process without grace."""
        await self._supervisor.kill()

    async def __aenter__(self) -> Self:
        with contextlib.ExitStack() as entered:
            entered.enter_context(state.locked(self._data))
            port_numbers.check(self.ports)
            self._keep_last_logs()
            await self._supervisor.start()
            self._left = entered.pop_all()
        self._watching = asyncio.create_task(self._supervisor.watch())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._left:
            if self._watching:
                self._watching.cancel()
                await asyncio.gather(self._watching, return_exceptions=True)
            await self._supervisor.stop()

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as entered:
            thread = entered.enter_context(contextlib.closing(_LoopThread()))
            thread.run(self.__aenter__())
            entered.pop_all()
        self._thread = thread
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._thread:
            with contextlib.closing(self._thread):
                self._thread.run(self.__aexit__(kind, error, trace))

    def _changed(self, event: Event) -> None:
        state.write(self._data, self.running())
        self._report(event)

    def running(self) -> RunningSuite:
        """Where everything is now."""
        parts = [
            RunningPart(name, self.ports[name], pid, str(self.logs / f"{name}.log"))
            for name, pid in self.pids.items()
        ]
        return RunningSuite(
            os.getpid(), self._profile, self.url, dict(self.ports), parts, self._version
        )

    def _keep_last_logs(self) -> None:
        for log in self.logs.glob("*.log"):
            log.replace(log.with_suffix(".log.1"))


class _LoopThread:
    """An event loop of its own, so that the suite is watched while a program goes on."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="suite", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
