"""The models that can be asked, and which of them a question may be shown to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

import structlog

from providers.chat import ChatClient
from providers.endpoint import Endpoint
from services.generate.budget import Estimate
from services.generate.contract import SCHEMA
from services.generate.evidence import Source
from services.generate.prompt import Prompt
from services.generate.qualification import Qualification, fingerprint
from services.generate.task import Task

log = structlog.get_logger()

# Versions of instructions for which the log was told that a candidate is disabled.
MOST_TOLD = 1_000


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """One endpoint and the client that calls it.

    `fingerprint` changes with everything that makes it answer as it does; `schema` is None where
    it can only be asked for JSON. Without a `qualification` an operator vouches for it: it sees
    everything, and whichever model serves is taken for the right one.
    """

    endpoint: Endpoint
    chat: ChatClient
    fingerprint: str
    schema: Mapping[str, object] | None = None
    qualification: Qualification | None = None

    @classmethod
    def of(
        cls, chat: ChatClient, endpoint: Endpoint, qualification: Qualification | None = None
    ) -> Self:
        schema = SCHEMA if endpoint.has_schema else None
        return cls(endpoint, chat, fingerprint(endpoint), schema, qualification)

    def estimate(self, prompt: Prompt) -> Estimate:
        written = self.endpoint.options.output_tokens
        read = self.chat.estimate(prompt.messages, prompt.tokens) - written
        return Estimate(read, written, self.cost(read, written))

    def cost(self, read: int, written: int) -> float:
        price = self.endpoint.price
        return price.of(read, written) if price else 0.0

    def knows(self, instructions_version: str) -> bool:
        """Whether it was evaluated with these instructions."""
        qualification = self.qualification
        return qualification is None or instructions_version in qualification.instructions

    def may_see(self, sources: Sequence[Source]) -> bool:
        """Whether it was evaluated for sources as secret as these."""
        if self.qualification is None:
            return True
        most = max(self.qualification.levels)
        return all(source.level <= most for source in sources)

    def needs_review(self, served_model: str) -> bool:
        if self.qualification is None:
            return False
        return self.qualification.is_review or served_model != self.qualification.served_model


@dataclass(frozen=True, slots=True)
class Candidates:
    """In the order in which they are asked."""

    every: Sequence[Candidate]
    _told: set[tuple[str, str]] = field(default_factory=set)

    def able(self, task: Task) -> list[Candidate]:
        """Those that may answer this; that instructions changed is told once for each."""
        version = task.instructions_version
        for candidate in self.every:
            if not candidate.knows(version):
                self._tell(candidate.endpoint.id, version)
        return [each for each in self.every if each.knows(version) and each.may_see(task.sources)]

    def _tell(self, candidate: str, version: str) -> None:
        if (candidate, version) in self._told or len(self._told) >= MOST_TOLD:
            return
        self._told.add((candidate, version))
        log.error(
            "candidate_disabled",
            candidate=candidate,
            reason="requalification is due: it was not evaluated with these instructions",
            instructions_version=version,
        )
