"""The gRPC face: AnswerService for internal services."""

from __future__ import annotations  # gRPC's classes are generic in their stubs only

from typing import Any

import grpc

from gateway.admission import Admission
from gateway.telling import Event
from gateway.wire import event_message, question_of, response
from sluice.answer.v1 import answer_pb2, answer_pb2_grpc
from sluice.evidence.v1.evidence_pb2 import Passage, Source


class AnswerService(answer_pb2_grpc.AnswerServiceServicer):
    def __init__(self, admission: Admission[Passage, Source]) -> None:
        self._admission = admission

    async def Ask(  # noqa: N802 - the contract's name
        self,
        request: answer_pb2.AskRequest,
        context: object,  # noqa: ARG002 - the contract's shape
    ) -> answer_pb2.AskResponse:
        return response(await self._admission.ask(question_of(request)))

    async def AskStream(  # type: ignore[override] # noqa: N802 - a coroutine that writes; the stub knows generators only
        self,
        request: answer_pb2.AskStreamRequest,
        context: grpc.aio.ServicerContext[Any, Any],
    ) -> None:
        async def tell(event: Event[Source]) -> None:
            await context.write(event_message(event))

        await self._admission.ask(question_of(request.ask), tell=tell)
