"""The models that can be asked, and which of them a question may be shown to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from providers.chat import ChatClient, ChatMessage
from providers.endpoint import Endpoint
from services.generate.budget import Estimate
from services.generate.contract import SCHEMA
from services.generate.qualification import Qualification, fingerprint
from services.generate.task import Task


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

    def estimate(self, messages: Sequence[ChatMessage], input_tokens: int) -> Estimate:
        written = self.endpoint.options.output_tokens
        read = max(0, self.chat.estimate(messages, input_tokens) - written)
        return Estimate(read, written, self.cost(read, written))

    def cost(self, read: int, written: int) -> float:
        price = self.endpoint.price
        return price.of(read, written) if price else 0.0

    def may_answer(self, task: Task) -> bool:
        """Whether it was evaluated with these instructions, and for sources as secret as these."""
        if self.qualification is None:
            return True
        allowed = max(self.qualification.levels)
        return task.instructions_version in self.qualification.instructions and all(
            source.level <= allowed for source in task.sources
        )

    def needs_review(self, served_model: str) -> bool:
        if self.qualification is None:
            return False
        return self.qualification.is_review or served_model != self.qualification.served_model
