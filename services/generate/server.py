"""The RPC face of the generate stage."""

import time

import grpc
import structlog

from chassis import deadlines
from chassis.deadlines import Deadline
from chassis.errors import InvalidInput
from services.generate import wire
from services.generate.guard import Guard
from services.generate.result import Result
from services.generate.task import Answering, Task
from sluice.generate.v1 import generate_pb2 as pb
from sluice.generate.v1.generate_pb2_grpc import GenerateServiceServicer

log = structlog.get_logger()

# Kept back, so that a spent deadline is told as an outcome before the call itself is cut off.
TO_TELL = 0.05


class GenerateServicer(GenerateServiceServicer):
    """`needs_messages` is said of a way to answer that sends them to a model."""

    def __init__(self, answering: Answering, guard: Guard, *, needs_messages: bool) -> None:
        self._answering = answering
        self._guard = guard
        self._needs_messages = needs_messages

    async def Generate(  # noqa: N802 - the contract's name
        self,
        request: pb.GenerateRequest,
        context: grpc.aio.ServicerContext[pb.GenerateRequest, pb.GenerateResponse],  # noqa: ARG002
    ) -> pb.GenerateResponse:
        task = wire.task(request)
        self._guard.check(task)
        if self._needs_messages and task.sources and not task.messages:
            raise InvalidInput("there are no messages for the model", field="messages")
        _finish_early()
        began = time.monotonic()
        result = await self._answering.answer(task)
        _tell(task, result, time.monotonic() - began)
        return wire.response(result)


def _finish_early() -> None:
    deadline = deadlines.current()
    if deadline is not None:
        deadlines.enter(Deadline(deadline.at - TO_TELL))


def _tell(task: Task, result: Result, seconds: float) -> None:
    spent = result.spent
    log.info(
        "answered",
        verdict=result.verdict.name,
        sources=len(task.sources),
        citations=len(result.citations),
        attempts=spent.attempts,
        model=spent.model,
        counted_tokens=task.input_tokens,
        input_tokens=spent.input_tokens,
        output_tokens=spent.output_tokens,
        seconds=round(seconds, 3),
    )
