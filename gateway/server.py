"""The gRPC face: AnswerService for internal services."""

from gateway.admission import Room
from gateway.flow import Flow
from gateway.wire import question_of, response
from sluice.answer.v1 import answer_pb2, answer_pb2_grpc
from sluice.evidence.v1.evidence_pb2 import Passage, Source


class AnswerService(answer_pb2_grpc.AnswerServiceServicer):
    def __init__(self, flow: Flow[Passage, Source], room: Room) -> None:
        self._flow = flow
        self._room = room

    async def Ask(  # noqa: N802 - the contract's name
        self,
        request: answer_pb2.AskRequest,
        context: object,  # noqa: ARG002 - the contract's shape
    ) -> answer_pb2.AskResponse:
        question = question_of(request)
        with self._room.seat():
            return response(await self._flow.ask(question))
