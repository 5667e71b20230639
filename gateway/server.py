"""The gRPC face: AnswerService for internal services."""

from __future__ import annotations  # gRPC's classes are generic in their stubs only

from typing import Any

import grpc

from gateway.jobs.desk import Desk
from gateway.jobs.wire import deferral_of, job_message
from gateway.telling import Event
from gateway.wire import event_message, question_of, response
from sluice.answer.v1 import answer_pb2, answer_pb2_grpc
from sluice.evidence.v1.evidence_pb2 import Source


class AnswerService(answer_pb2_grpc.AnswerServiceServicer):
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def Ask(  # noqa: N802 - the contract's name
        self,
        request: answer_pb2.AskRequest,
        context: object,  # noqa: ARG002 - the contract's shape
    ) -> answer_pb2.AskResponse:
        return response(await self._desk.ask(question_of(request), deferral_of(request)))

    async def AskStream(  # type: ignore[override] # noqa: N802 - a coroutine that writes; the stub knows generators only
        self,
        request: answer_pb2.AskStreamRequest,
        context: grpc.aio.ServicerContext[Any, Any],
    ) -> None:
        async def tell(event: Event[Source]) -> None:
            await context.write(event_message(event))

        await self._desk.ask(question_of(request.ask), deferral_of(request.ask), tell=tell)

    async def GetJob(  # noqa: N802 - the contract's name
        self,
        request: answer_pb2.GetJobRequest,
        context: object,  # noqa: ARG002 - the contract's shape
    ) -> answer_pb2.GetJobResponse:
        return answer_pb2.GetJobResponse(job=job_message(await self._desk.look(request.job_id)))

    async def CancelJob(  # noqa: N802 - the contract's name
        self,
        request: answer_pb2.CancelJobRequest,
        context: object,  # noqa: ARG002 - the contract's shape
    ) -> answer_pb2.CancelJobResponse:
        ended = await self._desk.cancel(request.job_id)
        return answer_pb2.CancelJobResponse(job=job_message(ended))
