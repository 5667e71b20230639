"""Bounds on what one call may carry, checked before any work is spent on it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from chassis.errors import InvalidInput
from services.generate.task import Task

QUESTION_CHARACTERS = 4_000
REASON = "MESSAGES_TOO_LARGE"
# No question holds one and no message of ours, where documents are quoted in JSON; endpoints refuse
# some and stop reading at others.
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")


@dataclass(frozen=True, slots=True)
class Guard:
    """`content_bytes` bounds all messages together, and all sources together."""

    messages: int
    sources: int
    content_bytes: int

    def check(self, task: Task, *, needs_messages: bool) -> None:
        """Raises InvalidInput that names the field."""
        if not task.question.strip():
            raise InvalidInput("the question is empty", field="question")
        if len(task.question) > QUESTION_CHARACTERS:
            raise InvalidInput(
                f"the question has more than {QUESTION_CHARACTERS} characters", field="question"
            )
        if _CONTROL.search(task.question):
            raise InvalidInput("the question holds a control character", field="question")
        for at, message in enumerate(task.messages):
            if _CONTROL.search(message.content):
                raise InvalidInput(
                    "the message holds a control character", field=f"messages[{at}].content"
                )
        if needs_messages and task.sources and not task.messages:
            raise InvalidInput("there are no messages for the model", field="messages")
        self._check("messages", [message.content for message in task.messages], self.messages)
        self._check("sources", [source.text for source in task.sources], self.sources)

    def _check(self, field: str, contents: Sequence[str], most: int) -> None:
        if len(contents) > most:
            raise InvalidInput(f"more than {most} {field}", field=field, reason=REASON)
        size = sum(len(content.encode()) for content in contents)
        if size > self.content_bytes:
            raise InvalidInput(
                f"{field} of {size} bytes are above the limit of {self.content_bytes}",
                field=field,
                reason=REASON,
            )
