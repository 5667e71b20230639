"""What chat front ends send and get: the shapes of OpenAI's chat completions."""

from collections.abc import Sequence
from typing import Any, Final, Literal

from pydantic import BaseModel, Field

from chassis.errors import InvalidInput, NotFound
from gateway.outcome import Acceptance, Mode, Reason
from gateway.problem import Problem
from gateway.question import Question
from gateway.schema import AnswerResponse, SourceResponse

MODEL: Final = "sluice"
# What would change the answer, which no caller can do here. The rest of what OpenAI knows only
# tunes how a model writes, and has no effect.
UNSUPPORTED = ("tools", "functions", "logprobs", "top_logprobs", "audio")


class PartRequest(BaseModel):
    """A part of a message. Only text can be read here."""

    type: str = Field(examples=["text"])
    text: str | None = None


class MessageRequest(BaseModel):
    """A message. Only the last one of the user is read."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[PartRequest] | None = None


class StreamOptionsRequest(BaseModel):
    include_usage: bool | None = None


class FormatRequest(BaseModel):
    type: str = Field(examples=["text"], json_schema_extra={"const": "text"})


def _only(values: list[Any], description: str) -> Any:  # noqa: ANN401 - as pydantic's own
    """Published alone: what is refused is refused in our words."""
    return Field(None, description=description, json_schema_extra={"enum": values})


class ChatRequest(BaseModel):
    """A conversation, of which the last user message is the question.

    All other messages are ignored, as is whatever tunes a model.
    """

    model: str = Field(examples=[MODEL], json_schema_extra={"const": MODEL})
    messages: list[MessageRequest] = Field(
        examples=[[{"role": "user", "content": "How do we rotate the database password?"}]],
        json_schema_extra={"contains": {"properties": {"role": {"const": "user"}}}},
    )
    stream: bool | None = None
    stream_options: StreamOptionsRequest | None = None
    n: int | None = _only([None, 1], "only 1")
    response_format: FormatRequest | None = Field(None, description="only text")
    tools: list[Any] | None = _only([None, []], "none")
    functions: list[Any] | None = _only([None, []], "none")
    logprobs: bool | None = _only([None, False], "only false")
    top_logprobs: int | None = _only([None, 0], "only 0")
    audio: dict[str, Any] | None = _only([None, {}], "none")

    @property
    def wants_usage(self) -> bool:
        return bool(self.stream_options and self.stream_options.include_usage)

    def to_question(self) -> Question:
        """The question. Raises InvalidInput that names the field, NotFound for another model."""
        if self.model != MODEL:
            raise NotFound(f"the only model here is {MODEL}", reason="MODEL_NOT_FOUND")
        for name in UNSUPPORTED:
            if getattr(self, name):
                raise _unsupported(name, "it is not supported here")
        if self.n not in {None, 1}:
            raise _unsupported("n", "there is one answer to a question")
        if self.response_format and self.response_format.type != "text":
            raise _unsupported("response_format", "answers are text")
        return self._asked()

    def _asked(self) -> Question:
        asked = [place for place, one in enumerate(self.messages) if one.role == "user"]
        if not asked:
            raise InvalidInput("there is no message of the user", field="messages")
        field = f"messages[{asked[-1]}].content"
        text = _text(self.messages[asked[-1]].content or "", field)
        try:
            return Question(text)
        except InvalidInput as error:
            raise InvalidInput(error.message, field=field, reason=error.reason) from error


def _unsupported(field: str, why: str) -> InvalidInput:
    return InvalidInput(why, field=field, reason="UNSUPPORTED_PARAMETER")


def _text(content: str | list[PartRequest], field: str) -> str:
    if isinstance(content, str):
        return content
    for place, part in enumerate(content):
        if part.type != "text":
            raise _unsupported(f"{field}[{place}]", "only text can be read here")
    return "\n".join(part.text or "" for part in content)


class CitedAddress(BaseModel):
    """A mark of the content that stands for a document with an address."""

    start_index: int = Field(description="first character of the mark, in code points")
    end_index: int = Field(description="one past its last")
    title: str
    url: str


class AnnotationResponse(BaseModel):
    type: Literal["url_citation"] = "url_citation"
    url_citation: CitedAddress

    @classmethod
    def of(cls, start: int, end: int, source: SourceResponse) -> "AnnotationResponse":
        title = source.title or source.document_id
        cited = CitedAddress(start_index=start, end_index=end, title=title, url=source.uri)
        return cls(url_citation=cited)


class ChatUsageResponse(BaseModel):
    """Tokens."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int

    @classmethod
    def of(cls, answer: AnswerResponse) -> "ChatUsageResponse | None":
        """None when the provider did not say. What was never asked has cost nothing."""
        spent = answer.usage
        sent, written = spent.input_tokens, spent.output_tokens
        if not spent.attempts:
            sent, written = sent or 0, written or 0
        if sent is None or written is None:
            return None
        return cls(prompt_tokens=sent, completion_tokens=written, total_tokens=sent + written)


class OutcomeResponse(BaseModel):
    """What came of the question, which OpenAI's shapes have no place for."""

    answer_id: str
    mode: Mode
    reason: Reason
    acceptance: Acceptance | None = Field(description="null without content")
    age_seconds: float | None = Field(description="of a PREVIOUS answer, since it was validated")
    job_id: str | None = Field(description="of a QUEUED question")
    message: str = Field(description="the same in plain words")
    sources: list[SourceResponse]

    @classmethod
    def of(cls, answer: AnswerResponse) -> "OutcomeResponse":
        return cls.model_validate(answer, from_attributes=True)


class MessageResponse(BaseModel):
    role: Literal["assistant"] = "assistant"
    content: str
    refusal: None = None
    annotations: list[AnnotationResponse]


class ChoiceResponse(BaseModel):
    index: Literal[0] = 0
    message: MessageResponse
    finish_reason: Literal["stop"] = "stop"
    logprobs: None = None


class ChatResponse(BaseModel):
    """The answer, or in plain words why there is none."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int = Field(description="seconds since 1970")
    model: Literal["sluice"] = MODEL
    choices: list[ChoiceResponse]
    usage: ChatUsageResponse | None
    sluice: OutcomeResponse


class DeltaResponse(BaseModel):
    """What is new in a chunk."""

    role: Literal["assistant"] | None = Field(None, exclude_if=lambda role: role is None)
    content: str | None = Field(None, exclude_if=lambda content: content is None)
    annotations: list[AnnotationResponse] = Field([], exclude_if=lambda marks: not marks)


class ChunkChoiceResponse(BaseModel):
    index: Literal[0] = 0
    delta: DeltaResponse
    finish_reason: Literal["stop"] | None = None
    logprobs: None = None


class ChunkResponse(BaseModel):
    """A piece of the answer. `sluice` is in the one that finishes it."""

    id: str
    object: Literal["chat.completion.chunk"] = "chat.completion.chunk"
    created: int
    model: Literal["sluice"] = MODEL
    choices: Sequence[ChunkChoiceResponse]
    usage: ChatUsageResponse | None = None
    sluice: OutcomeResponse | None = Field(None, exclude_if=lambda outcome: outcome is None)


class ModelResponse(BaseModel):
    id: Literal["sluice"] = MODEL
    object: Literal["model"] = "model"
    created: Literal[0] = 0
    owned_by: Literal["sluice"] = MODEL


class ModelsResponse(BaseModel):
    """What `model` can be."""

    object: Literal["list"] = "list"
    data: list[ModelResponse]


_KINDS = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
_OURS = 500


class ErrorResponse(BaseModel):
    """Why a request was refused."""

    message: str
    type: str
    param: str | None = Field(description="the offending field of the request")
    code: str = Field(description="stable word for programs")


class RefusalResponse(BaseModel):
    """A refusal in OpenAI's shape."""

    error: ErrorResponse

    @classmethod
    def of(cls, problem: Problem) -> "RefusalResponse":
        kind = "server_error" if problem.status >= _OURS else "invalid_request_error"
        return cls(
            error=ErrorResponse(
                message=problem.detail,
                type=_KINDS.get(problem.status, kind),
                param=problem.field,
                code=problem.reason.lower(),
            )
        )
