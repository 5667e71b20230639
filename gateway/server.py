"""The gRPC face: AnswerService for internal services."""

from gateway.admission import Admission
from gateway.wire import question_of, response
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
