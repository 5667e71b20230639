"""What the stage is asked to do, and who can do it."""

from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from capacity import Workload
from services.generate.audience import Audience
from services.generate.evidence import Scores, Source
from services.generate.result import Result


class Role(Enum):
    SYSTEM = "system"
    USER = "user"


@dataclass(frozen=True, slots=True)
class Message:
    role: Role
    content: str


@dataclass(frozen=True, slots=True)
class Task:
    """`input_tokens` counts the messages; 0 where nobody counted."""

    tenant: str
    question: str
    messages: tuple[Message, ...]
    sources: tuple[Source, ...]
    scores: Scores
    input_tokens: int
    instructions_version: str = ""
    workload: Workload = Workload.INTERACTIVE


class Answering(Protocol):
    """One way to answer: by quoting, or by asking a model."""

    async def answer(self, task: Task, audience: Audience | None = None) -> Result:
        """Never raises for what can go wrong with an answer; that is the result's verdict.

        An audience is shown what may be shown while it comes; the result is the whole answer.
        """
        ...
