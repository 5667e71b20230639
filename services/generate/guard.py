"""Bounds on what one call may carry, checked before any work is spent on it."""

from dataclasses import dataclass

from chassis.errors import InvalidInput
from services.generate.task import Task

QUESTION_CHARACTERS = 4_000
REASON = "MESSAGES_TOO_LARGE"


@dataclass(frozen=True, slots=True)
class Guard:
    """`content_bytes` bounds all messages together, and all sources together."""

    messages: int
    sources: int
    content_bytes: int

    def check(self, task: Task) -> None:
        """Raises InvalidInput that names the field."""
        if not task.question.strip():
            raise InvalidInput("the question is empty", field="question")
        if len(task.question) > QUESTION_CHARACTERS:
            raise InvalidInput(
                f"the question has more than {QUESTION_CHARACTERS} characters", field="question"
            )
        self._check("messages", [m.content for m in task.messages], self.messages)
        self._check("sources", [s.text for s in task.sources], self.sources)

    def _check(self, field: str, texts: list[str], most: int) -> None:
        if len(texts) > most:
            raise InvalidInput(f"more than {most} {field}", field=field, reason=REASON)
        size = sum(len(text.encode()) for text in texts)
        if size > self.content_bytes:
            raise InvalidInput(
                f"{field} of {size} bytes are above the limit of {self.content_bytes}",
                field=field,
                reason=REASON,
            )
