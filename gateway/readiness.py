"""How the last check of each part ended, and what can be had meanwhile. Never a call of its own."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from chassis.health import Dependency

# The parts that each capability needs.
CAPABILITIES: Mapping[str, frozenset[str]] = {
    "answers": frozenset({"retrieve", "assemble", "generate"}),
    "search": frozenset({"retrieve"}),
    "documents": frozenset({"ingest"}),
    "jobs": frozenset({"jobs"}),
}


class Parts:
    """Remembers the regular checks.

    Ready as the gRPC health service is: once every needed part has answered.
    """

    def __init__(self, dependencies: Sequence[Dependency]) -> None:
        self._dependencies = dependencies
        self._up = {part.name: False for part in dependencies}
        self.ready = False

    def watched(self) -> list[Dependency]:
        """The dependencies, for the process to check."""
        return [replace(part, check=partial(self._check, part)) for part in self._dependencies]

    def down(self) -> list[str]:
        return [name for name, up in self._up.items() if not up]

    def available(self) -> dict[str, bool]:
        """Whether each capability can be had now. One whose part this process lacks cannot."""
        up = {name for name, answered in self._up.items() if answered}
        return {name: needed <= up for name, needed in CAPABILITIES.items()}

    async def _check(self, part: Dependency) -> None:
        answered = False
        try:
            await part.check()
            answered = True
        finally:
            self._up[part.name] = answered
            needed = (self._up[other.name] for other in self._dependencies if other.needed)
            self.ready = self.ready or all(needed)
