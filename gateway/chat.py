"""The OpenAI-compatible face, so that chat front ends can ask: one question, one whole answer."""

import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from fastapi import APIRouter, Request, Response
from fastapi.sse import format_sse_event
from pydantic import BaseModel
from starlette.types import Receive, Scope, Send

from chassis.errors import InvalidInput
from gateway import event_stream
from gateway.admission import Stand
from gateway.answer_text import content_of, marks_of
from gateway.body import JsonRequest, JsonRoute
from gateway.chat_schema import (
    AnnotationResponse,
    ChatRequest,
    ChatResponse,
    ChatUsageResponse,
    ChoiceResponse,
    ChunkChoiceResponse,
    ChunkResponse,
    DeltaResponse,
    MessageResponse,
    ModelResponse,
    ModelsResponse,
    OutcomeResponse,
    RefusalResponse,
)
from gateway.departure import alongside, unless_gone
from gateway.door import CLIENT_GONE, SIGNED, Door, responding
from gateway.event_stream import Lines
from gateway.jobs.job import Deferral
from gateway.jobs.prefer import DEFERRED, deferral, located
from gateway.problem import REFUSED, headers_of, problem_of
from gateway.question import Question
from gateway.schema import AnswerResponse

# Front ends send the whole conversation each time.
CONVERSATION_BYTES = 256 * 1024
DONE = b"data: [DONE]\n\n"

_REFUSED: dict[str, Any] = {"model": RefusalResponse, "description": "refused"}
_REFUSALS: dict[int | str, dict[str, Any]] = {"4XX": _REFUSED, "5XX": _REFUSED}
_STREAMED: dict[str, Any] = {"content": {event_stream.MEDIA_TYPE: {"schema": {"type": "string"}}}}


class ConversationRequest(JsonRequest):
    most: ClassVar[int] = CONVERSATION_BYTES


class ChatRoute(JsonRoute):
    """A route whose refusals have OpenAI's shape, so that its clients raise what they know."""

    request: ClassVar[type[JsonRequest]] = ConversationRequest

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().serve(scope, receive, send)
        except REFUSED as error:
            await refusal(scope["state"]["request_id"], error)(scope, receive, send)


def router(door: Door) -> APIRouter:
    """The routes that OpenAI's clients call, with `/v1` in their base address."""
    routes = APIRouter(route_class=ChatRoute, responses=_REFUSALS)

    @routes.post(
        "/v1/chat/completions",
        response_model=ChatResponse,
        responses={200: _STREAMED},
        openapi_extra=DEFERRED,
    )
    async def complete(request: Request, body: ChatRequest) -> Response:
        """Answer the last user message from the documents that the caller may read.

        Nothing else of the conversation is read. With `stream` the answer comes in chunks, after
        it was validated as a whole. With `Prefer: respond-async` the message says where the job is.
        """
        question, later = body.to_question(), deferral(request.headers)
        await door.enter(request.headers, door.answer_deadline)
        stand = partial(setattr, request.state, "standings")
        ask = partial(_answer, door, question, later, stand)
        if body.stream:
            return ChatStream(ask, request.state.request_id, usage=body.wants_usage)
        found = await unless_gone(request.receive, ask())
        if found is None:
            return Response(status_code=CLIENT_GONE)
        return located(responding(Completion(found, int(time.time())).whole()), found)

    @routes.get("/v1/models", response_model=ModelsResponse, openapi_extra=SIGNED)
    async def models(request: Request) -> Response:
        """What `model` can be."""
        await door.caller(request.headers)
        return responding(ModelsResponse(data=[ModelResponse()]))

    return routes


async def _answer(
    door: Door, question: Question, deferral: Deferral | None, stand: Stand
) -> AnswerResponse:
    try:
        return AnswerResponse.of(await door.desk.ask(question, deferral, stand))
    except InvalidInput as error:
        # What a stage says of the question is said of the message that it was.
        field = "messages" if error.field == "question" else error.field
        raise InvalidInput(error.message, field=field, reason=error.reason) from error


def refusal(request_id: str, error: Exception) -> Response:
    """The response that says `error` as OpenAI's clients understand it."""
    problem = problem_of(request_id, error)
    content = RefusalResponse.of(problem).model_dump_json()
    return Response(content, problem.status, headers_of(error), "application/json")


@dataclass(frozen=True, slots=True)
class Completion:
    """An answer in OpenAI's shapes. `created` in seconds since 1970."""

    answer: AnswerResponse
    created: int

    @property
    def id(self) -> str:
        return f"chatcmpl-{self.answer.answer_id}"

    def whole(self) -> ChatResponse:
        message = MessageResponse(
            content=content_of(self.answer), annotations=_annotations(self.answer)
        )
        return ChatResponse(
            id=self.id,
            created=self.created,
            choices=[ChoiceResponse(message=message)],
            usage=ChatUsageResponse.of(self.answer),
            sluice=OutcomeResponse.of(self.answer),
        )

    def chunks(self, *, usage: bool) -> Iterator[ChunkResponse]:
        """The same in pieces, a line each, and at the end the usage if it is wanted."""
        yield self._chunk(DeltaResponse(role="assistant", content=""))
        for line in content_of(self.answer).splitlines(keepends=True):
            yield self._chunk(DeltaResponse(content=line))
        marks = _annotations(self.answer)
        if marks:
            yield self._chunk(DeltaResponse(annotations=marks))
        end = ChunkChoiceResponse(delta=DeltaResponse(), finish_reason="stop")
        outcome = OutcomeResponse.of(self.answer)
        yield ChunkResponse(id=self.id, created=self.created, choices=[end], sluice=outcome)
        if usage:
            spent = ChatUsageResponse.of(self.answer)
            yield ChunkResponse(id=self.id, created=self.created, choices=[], usage=spent)

    def _chunk(self, delta: DeltaResponse) -> ChunkResponse:
        choices = [ChunkChoiceResponse(delta=delta)]
        return ChunkResponse(id=self.id, created=self.created, choices=choices)


def _annotations(answer: AnswerResponse) -> list[AnnotationResponse]:
    """The marks of the content whose documents have an address, in order."""
    addressed = {source.label: source for source in answer.sources if source.uri}
    return [
        AnnotationResponse.of(start, end, addressed[label])
        for start, end, labels in marks_of(answer)
        for label in labels
        if label in addressed
    ]


class ChatStream(Response):
    """The answer in chunks once it is there; until then comments that say that it is awaited.

    What goes wrong before the first comment is an ordinary refusal, later the last event. A reader
    that leaves ends the work.
    """

    media_type = event_stream.MEDIA_TYPE

    def __init__(
        self, ask: Callable[[], Awaitable[AnswerResponse]], request_id: str, *, usage: bool
    ) -> None:
        # As in event_stream: the body is not known, hence no length of it.
        self.status_code = 200
        self.background = None
        self.init_headers(event_stream.HEADERS)
        self._ask = ask
        self._usage = usage
        self._request_id = request_id

    async def __call__(self, _: Scope, receive: Receive, send: Send) -> None:
        lines = Lines(self, send)
        async with lines.ending(self._failed):
            await unless_gone(receive, self._tell(lines))

    async def _tell(self, lines: Lines) -> None:
        async with alongside(lines.beat(opening=True)):
            answer = await self._ask()
            for chunk in Completion(answer, int(time.time())).chunks(usage=self._usage):
                await lines.put(_event(chunk))
        await lines.end(DONE)

    def _failed(self, error: Exception) -> bytes:
        return _event(RefusalResponse.of(problem_of(self._request_id, error)))


def _event(content: BaseModel) -> bytes:
    # As in event_stream: ASCII has no line ends that only some readers know.
    return format_sse_event(data_str=content.model_dump_json(ensure_ascii=True))
