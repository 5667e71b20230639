"""The RPC face of the generate stage."""

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing

import grpc
import structlog

from chassis import deadlines, identity
from chassis.deadlines import Deadline
from chassis.errors import InvalidInput
from services.generate import probe, wire
from services.generate.audience import Final
from services.generate.delivery import deliver
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
        task = self._admitted(request)
        began = time.monotonic()
        result = await self._answering.answer(task)
        _tell(task, result, time.monotonic() - began)
        return wire.response(result)

    async def GenerateStream(  # noqa: N802 - the contract's name
        self,
        request: pb.GenerateStreamRequest,
        context: grpc.aio.ServicerContext[pb.GenerateStreamRequest, pb.GenerateStreamResponse],  # noqa: ARG002
    ) -> AsyncGenerator[pb.GenerateStreamResponse, None]:
        task = self._admitted(request.task)
        began = time.monotonic()
        async with aclosing(deliver(self._answering, task)) as events:
            async for event in events:
                if isinstance(event, Final):
                    _tell(task, event.result, time.monotonic() - began)
                yield wire.event(event)

    def _admitted(self, request: pb.GenerateRequest) -> Task:
        """The task, within its bounds and the request's time. Raises InvalidInput."""
        try:
            task = wire.task(request, _tenant())
            self._guard.check(task, needs_messages=self._needs_messages)
        except InvalidInput as error:
            probe.refused(error.field)
            raise
        _finish_early()
        return task


def _tenant() -> str:
    return identity.current().tenant


def _finish_early() -> None:
    deadline = deadlines.current()
    if deadline is not None:
        deadlines.enter(Deadline(deadline.at - TO_TELL))


def _tell(task: Task, result: Result, seconds: float) -> None:
    probe.outcome(result.verdict)
    spent, provenance = result.spent, result.provenance
    log.info(
        "answered",
        **probe.labels(result.verdict),
        sources=len(task.sources),
        citations=len(result.citations),
        attempts=spent.attempts,
        model=spent.model,
        candidate=provenance.candidate,
        switch=provenance.switch.name if provenance.switch else None,
        cached_age=provenance.cached_age,
        counted_tokens=task.input_tokens,
        input_tokens=spent.input_tokens,
        output_tokens=spent.output_tokens,
        seconds=round(seconds, 3),
    )
