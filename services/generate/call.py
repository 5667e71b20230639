"""One question on its way through the pipeline."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from services.generate.audience import Audience
from services.generate.budget import Ledger
from services.generate.candidate import Candidate
from services.generate.probe import Tell
from services.generate.result import Result, Switch
from services.generate.task import Task


@dataclass(slots=True)
class Route:
    """The candidates for one question and where it stands among them; it never goes back.

    `tries` counts the calls to the present one.
    """

    candidates: Sequence[Candidate]
    at: int = 0
    tries: int = 0
    switch: Switch | None = None

    @property
    def candidate(self) -> Candidate:
        return self.candidates[self.at]

    def others(self, *, of_another_pool: bool = False) -> list[int]:
        """Where the candidates stand that could be asked instead."""
        later = range(self.at + 1, len(self.candidates))
        return [at for at in later if not of_another_pool or self._pool(at) != self._pool(self.at)]

    def go(self, at: int, why: Switch) -> None:
        self.at, self.tries, self.switch = at, 0, why

    def _pool(self, at: int) -> str:
        return self.candidates[at].endpoint.pool


@dataclass(frozen=True, slots=True)
class Call:
    """`audience` is None where nothing is shown before all is done; `tell` is told each event."""

    task: Task
    audience: Audience | None
    ledger: Ledger
    route: Route
    tell: Tell

    @property
    def is_seen(self) -> bool:
        """Whether text was shown: then nothing may be asked again."""
        return self.audience is not None and self.audience.has_seen


class Step(Protocol):
    """A part of the pipeline, with all that is inside it."""

    async def answer(self, call: Call) -> Result:
        """Raises a SluiceError for whatever else can go wrong with an answer."""
        ...
