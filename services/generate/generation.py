"""Answering by a model: one call, its reply checked against the contract and the sources."""

import asyncio

import structlog

from capacity import CapacityRefused, CapacityTooLarge, CapacityUnavailable, Workload
from chassis.errors import ContractMismatch, DeadlineExceeded, Exhausted, SluiceError
from providers.chat import ChatClient, ChatMessage, Completion
from providers.failures import Refused
from services.generate import contract
from services.generate.cite import cited
from services.generate.contract import InvalidOutput
from services.generate.result import Result, Spent, Verdict
from services.generate.task import Task

log = structlog.get_logger()

# What a call is counted as where nobody counted its messages: a common size, not the whole limit.
UNCOUNTED_TOKENS = 4_000
CUT = "length"

# The first entry that fits decides. What operators have to mend is an outage to callers.
_VERDICTS: tuple[tuple[type[SluiceError], Verdict], ...] = (
    (Refused, Verdict.REFUSED),
    (InvalidOutput, Verdict.INVALID_OUTPUT),
    (Exhausted, Verdict.CAPACITY),
    (CapacityUnavailable, Verdict.CAPACITY),
    (DeadlineExceeded, Verdict.DEADLINE),
    (SluiceError, Verdict.MODEL_UNAVAILABLE),
)
_OPERATORS_MEND = (ContractMismatch, CapacityTooLarge)
_NEVER_SENT = (CapacityRefused, CapacityTooLarge, CapacityUnavailable)


class Generation:
    """Asks a model and lets nothing unchecked through.

    A sentence that its sources carry by less than `support_floor`, 0 to 1, needs a review.
    `is_structured` says that the endpoint can be held to a JSON schema; else the messages ask.
    """

    def __init__(self, chat: ChatClient, *, support_floor: float, is_structured: bool) -> None:
        self._chat = chat
        self._floor = support_floor
        self._schema = contract.SCHEMA if is_structured else None

    async def answer(self, task: Task) -> Result:
        if not task.sources:
            return Result(Verdict.NOTHING_FOUND)
        try:
            completion = await self._complete(task)
        except SluiceError as failure:
            return _failed(failure, Spent(attempts=0 if isinstance(failure, _NEVER_SENT) else 1))
        spent = _spent(completion)
        try:
            # Work of the processor, which must not hold up the process's other calls.
            return await asyncio.to_thread(self._checked, task, completion, spent)
        except InvalidOutput as failure:
            return _failed(failure, spent)

    async def _complete(self, task: Task) -> Completion:
        return await self._chat.complete(
            [ChatMessage(message.role.value, message.content) for message in task.messages],
            input_tokens=task.input_tokens or UNCOUNTED_TOKENS,
            workload=Workload.INTERACTIVE,
            schema=self._schema,
        )

    def _checked(self, task: Task, completion: Completion, spent: Spent) -> Result:
        if completion.finish_reason == CUT:
            raise InvalidOutput("cut off at the limit of its length")
        admitted = frozenset(source.label for source in task.sources)
        answer = contract.read(completion.text, admitted)
        if not answer.is_sufficient:
            return Result(Verdict.INSUFFICIENT, spent=spent)
        found = cited(answer.text, task.sources)
        accepted = found.support >= self._floor
        verdict = Verdict.ACCEPTED if accepted else Verdict.REVIEW_REQUIRED
        return Result(verdict, answer.text, found.citations, spent)


def _spent(completion: Completion) -> Spent:
    return Spent(1, completion.input_tokens, completion.output_tokens, completion.model)


def _failed(failure: SluiceError, spent: Spent) -> Result:
    verdict = next(verdict for kind, verdict in _VERDICTS if isinstance(failure, kind))
    tell = log.error if isinstance(failure, _OPERATORS_MEND) else log.warning
    tell("answer_failed", verdict=verdict.name, reason=failure.reason, problem=failure.message)
    return Result(verdict, spent=spent)
