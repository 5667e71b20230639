"""Standard health service: `liveness`, `readiness`, and one name a dependency as detail.

A process is ready from the first moment all needed dependencies answered until it drains. A later
outage of a dependency shows under the dependency's own name only, so that degraded modes serve;
a broken contract takes readiness away until it is mended.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import structlog
from grpc_health.v1 import health_pb2
from grpc_health.v1.health import aio

from chassis.errors import ContractMismatch, SluiceError

LIVENESS = "liveness"
READINESS = "readiness"
CHECK_EVERY = 1.0  # seconds
CHECK_LIMIT = 2.0  # seconds that one check may take

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Dependency:
    """A part that the process calls. `check` raises a SluiceError while it does not answer.

    A process does not wait at its start for a part that is not `needed`.
    """

    name: str
    check: Callable[[], Awaitable[None]]
    needed: bool = True


class Health:
    """Keeps the health service in step with the dependencies."""

    def __init__(self, dependencies: Sequence[Dependency]) -> None:
        self.servicer = aio.HealthServicer()
        self._dependencies = dependencies
        self._failing: dict[str, str] = {}
        self._started = False

    async def begin(self) -> None:
        await self._set(LIVENESS, serving=True)
        await self._set(READINESS, serving=False)
        await self._set("", serving=False)

    async def drain(self) -> None:
        """Not ready any more, for good."""
        await self.servicer.enter_graceful_shutdown()

    async def watch(self, stop: asyncio.Event) -> None:
        """Check the dependencies until `stop` is set."""
        while not stop.is_set():
            await self.check_once()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), CHECK_EVERY)

    async def check_once(self) -> None:
        found = await asyncio.gather(*(self._check(part) for part in self._dependencies))
        broken = any(isinstance(error, ContractMismatch) for error in found)
        results = list(zip(self._dependencies, found, strict=True))
        self._started = self._started or not any(error for part, error in results if part.needed)
        for part, error in results:
            await self._set(part.name, serving=error is None)
        ready = self._started and not broken
        await self._set(READINESS, serving=ready)
        await self._set("", serving=ready)

    async def _check(self, part: Dependency) -> SluiceError | None:
        error: SluiceError | None = None
        try:
            async with asyncio.timeout(CHECK_LIMIT):
                await part.check()
        except TimeoutError:
            error = SluiceError(f"no answer within {CHECK_LIMIT:g} s", reason="TIMEOUT")
        except SluiceError as failure:
            error = failure
        self._log_change(part.name, error)
        return error

    def _log_change(self, name: str, error: SluiceError | None) -> None:
        before, now = self._failing.get(name), error.message if error else None
        if error and now != before:
            self._failing[name] = error.message
            log.warning(
                "dependency_down", dependency=name, problem=error.message, reason=error.reason
            )
        elif error is None and before is not None:
            del self._failing[name]
            log.info("dependency_up", dependency=name)

    async def _set(self, name: str, *, serving: bool) -> None:
        status = health_pb2.HealthCheckResponse
        await self.servicer.set(name, status.SERVING if serving else status.NOT_SERVING)
