"""What a model is sent, and how many tokens that is."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from providers.chat import ChatMessage
from services.generate.contract import InvalidOutput
from services.generate.task import Task

# Put into the last message, since endpoints differ in what roles may follow each other.
REMINDER = (
    "\n\nYour reply to this was refused: {complaint}. Reply again with the agreed JSON object and"
    " nothing else, and name no source that is not in the evidence."
)


@dataclass(frozen=True, slots=True)
class Prompt:
    """`tokens` counts the messages; 0 where nobody counted."""

    messages: Sequence[ChatMessage]
    tokens: int

    @classmethod
    def of(cls, task: Task) -> Self:
        messages = [ChatMessage(each.role.value, each.content) for each in task.messages]
        return cls(messages, task.input_tokens)

    def reminded(self, complaint: InvalidOutput) -> "Prompt":
        """The same, and what was wrong with the reply to it."""
        reminder = REMINDER.format(complaint=complaint.message)
        *before, last = self.messages
        # A token is at least a byte.
        tokens = self.tokens and self.tokens + len(reminder.encode())
        return Prompt([*before, replace(last, content=last.content + reminder)], tokens)
