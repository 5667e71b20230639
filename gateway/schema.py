"""What HTTP callers send and get, as JSON."""

from dataclasses import asdict
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from capacity import Dimension, Mode, Snapshot
from capacity import Room as PoolRoom
from chassis.identity import AccessLevel
from gateway.answer import Answer, Provenance, SwitchReason, Usage
from gateway.levels import RoomLevels
from gateway.outcome import Acceptance, Reason
from gateway.outcome import Mode as AnswerMode
from gateway.question import (
    FILTER_VALUE_CHARACTERS,
    FILTER_VALUES,
    LOCALE,
    Filters,
    PublicationState,
    Question,
)
from gateway.search import Matches
from gateway.wire import passage_text, publication_state_of, put_outcome_of
from gateway.words import plain_words
from sluice.evidence.v1 import evidence_pb2
from sluice.ingest.v1 import ingest_pb2

# Bounds are only published here: Filters and Question refuse what is outside, for every face.
Value = Annotated[
    str, Field(json_schema_extra={"minLength": 1, "maxLength": FILTER_VALUE_CHARACTERS})
]
Values = Annotated[list[Value], Field(json_schema_extra={"maxItems": FILTER_VALUES})]


class Strict(BaseModel):
    """Refuses fields it does not know, so that nothing is silently without effect."""

    model_config = ConfigDict(extra="forbid")


class FilterRequest(Strict):
    """Each list narrows the search to its values; an empty one does not narrow."""

    document_types: Values = []
    document_ids: Values = []
    areas: Values = []
    publication_states: list[PublicationState] = Field(
        [],
        description="published when empty; draft needs the role",
        json_schema_extra={"maxItems": FILTER_VALUES},
    )

    def to_filters(self) -> Filters:
        """The filters. Raises InvalidInput that names the field."""
        return Filters(
            tuple(self.document_types),
            tuple(self.document_ids),
            tuple(self.areas),
            tuple(self.publication_states),
        )


UNFILTERED = FilterRequest()


class QuestionRequest(Strict):
    """A question. Instructions, tools, models and rights cannot be sent."""

    question: str = Field(
        description="1 to 4,000 characters after white space is normalised",
        examples=["How do we rotate the database password?"],
        json_schema_extra={"minLength": 1},
    )
    # One for all that name none: a default of its own would be copied each time.
    filters: FilterRequest = Field(
        default_factory=lambda: UNFILTERED,
        json_schema_extra={"default": UNFILTERED.model_dump()},
    )


class AnswerRequest(QuestionRequest):
    """A question to answer."""

    locale: str = Field(
        "",
        description="locale of the instructions; en when empty",
        examples=["pt"],
        json_schema_extra={"pattern": f"^({LOCALE.pattern})?$"},
    )

    supersedes: str = Field(
        "",
        description="id of a job of the caller's whose place this one takes, if it is queued",
        json_schema_extra={"pattern": "^([0-9a-f]{32})?$"},
    )

    def to_question(self) -> Question:
        """The question. Raises InvalidInput that names the field."""
        return Question(self.question, self.filters.to_filters(), self.locale)


class SearchRequest(QuestionRequest):
    """A question to find passages for."""

    limit: int | None = Field(
        None, ge=1, le=100, description="most passages; as many as seem useful when empty"
    )

    def to_question(self) -> Question:
        """The question. Raises InvalidInput that names the field."""
        return Question(self.question, self.filters.to_filters())


class PassageResponse(BaseModel):
    """A passage that the caller may read."""

    document_id: str
    title: str
    version: str = Field(description="the document's own; empty when it has none")
    heading_path: list[str]
    text: str
    score: float = Field(description="in the response's score space; only such can be compared")
    suspected_injection: bool = Field(description="the text resembles instructions to a model")

    @classmethod
    def of(cls, passage: evidence_pb2.Passage) -> "PassageResponse":
        return cls(
            document_id=passage.document_id,
            title=passage.title,
            version=passage.version,
            heading_path=list(passage.heading_path),
            text=passage_text(passage),
            score=passage.score,
            suspected_injection=passage.suspected_injection,
        )


class CountsResponse(BaseModel):
    """How many passages there were on the way."""

    candidates: int = Field(description="that the index returned")
    passed_threshold: int = Field(description="of them at or above the score threshold")
    returned: int


class SearchResponse(BaseModel):
    """Passages, best first. None is an answer too."""

    passages: list[PassageResponse]
    score_space: str = Field(examples=["COSINE"])
    counts: CountsResponse

    @classmethod
    def of(cls, found: Matches[evidence_pb2.Passage]) -> "SearchResponse":
        return cls(
            passages=[PassageResponse.of(passage) for passage in found.passages],
            score_space=found.score_space,
            counts=CountsResponse(**asdict(found.counts)),
        )


class CitationResponse(BaseModel):
    """One mark of the text."""

    label: str
    start: int = Field(description="first character of the cited sentence, in code points")
    end: int = Field(description="one past its last character, its mark included")
    support: float = Field(
        description="share of it that the source's included text carries, 0 to 1"
    )


class SourceResponse(BaseModel):
    """What was put before the model under one label, or is shown in an answer's stead."""

    label: str
    document_id: str
    title: str
    version: str
    heading_path: list[str]
    included_text: str
    score: float
    uri: str
    access_level: str = Field(examples=["team"])
    suspected_injection: bool
    passages: list[str] = Field(description="point ids of the passages it came from")

    @classmethod
    def of(cls, source: evidence_pb2.Source) -> "SourceResponse":
        return cls(
            label=source.label,
            document_id=source.document_id,
            title=source.title,
            version=source.version,
            heading_path=list(source.heading_path),
            included_text=source.included_text,
            score=source.score,
            uri=source.uri,
            access_level=AccessLevel(source.access_level).label,
            suspected_injection=source.suspected_injection,
            passages=[passage.point_id for passage in source.passages],
        )


class UsageResponse(BaseModel):
    """What was spent."""

    input_tokens: int | None = Field(description="null when the provider did not say")
    output_tokens: int | None = Field(description="null when the provider did not say")
    attempts: int
    model: str = Field(description="empty when none was asked")

    @classmethod
    def of(cls, usage: Usage) -> "UsageResponse":
        return cls(
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            attempts=usage.attempts,
            model=usage.model,
        )


class ProvenanceResponse(BaseModel):
    """How the answer came about."""

    candidate: str = Field(description="configured candidate that served; empty when none was")
    switch_reason: SwitchReason | None = Field(description="why it was not the first one")
    schema_constrained: bool = Field(description="the endpoint held the model to the schema")
    repaired: bool = Field(description="the first reply broke the contract, a second was asked for")
    cached_age_seconds: float | None = Field(
        description="since it was stored; null when it does not come from the cache"
    )

    @classmethod
    def of(cls, provenance: Provenance) -> "ProvenanceResponse":
        return cls(
            candidate=provenance.candidate,
            switch_reason=provenance.switch_reason,
            schema_constrained=provenance.schema_constrained,
            repaired=provenance.repaired,
            cached_age_seconds=provenance.cached_age,
        )


class TimingsResponse(BaseModel):
    """Milliseconds. A stage that was not asked has null."""

    retrieve: float | None = None
    assemble: float | None = None
    generate: float | None = None
    total: float


class AnswerResponse(BaseModel):
    """The answer, or plainly why there is none: an outage is an answer too."""

    answer_id: str
    mode: AnswerMode
    reason: Reason
    acceptance: Acceptance | None = Field(description="null without content")
    age_seconds: float | None = Field(description="of a PREVIOUS answer, since it was validated")
    job_id: str | None = Field(description="of a QUEUED question")
    message: str = Field(
        description="what came of the question, in plain words",
        examples=["an earlier answer, 3 h old: the model does not answer now"],
    )
    text: str
    citations: list[CitationResponse]
    sources: list[SourceResponse]
    usage: UsageResponse
    provenance: ProvenanceResponse
    timings: TimingsResponse
    instructions_version: str
    score_space: str = Field(examples=["COSINE"])
    epoch: int

    @classmethod
    def of(cls, answer: Answer[evidence_pb2.Source]) -> "AnswerResponse":
        written, outcome = answer.written, answer.written.outcome
        timings = {**answer.timings, "total": answer.elapsed}
        milliseconds = {name: round(1e3 * seconds, 3) for name, seconds in timings.items()}
        return cls(
            answer_id=answer.answer_id,
            mode=outcome.mode,
            reason=outcome.reason,
            acceptance=outcome.acceptance,
            age_seconds=outcome.age,
            job_id=outcome.job_id or None,
            message=plain_words(outcome, passages=bool(answer.sources) and not outcome.has_content),
            text=written.text,
            citations=[
                CitationResponse(
                    label=mark.label, start=mark.start, end=mark.end, support=mark.support
                )
                for mark in written.citations
            ],
            sources=[SourceResponse.of(source) for source in answer.sources],
            usage=UsageResponse.of(written.usage),
            provenance=ProvenanceResponse.of(written.provenance),
            timings=TimingsResponse(**milliseconds),
            instructions_version=answer.instructions_version,
            score_space=answer.score_space,
            epoch=answer.epoch,
        )


class MetadataResponse(BaseModel):
    """What is known of a document besides its text."""

    title: str
    version: str
    area: str
    document_type: str
    publication_state: str = Field(examples=["published"])
    access_level: str = Field(examples=["team"])
    groups: list[str]
    uri: str

    @classmethod
    def of(cls, known: ingest_pb2.DocumentMetadata) -> "MetadataResponse":
        return cls(
            title=known.title,
            version=known.version,
            area=known.area,
            document_type=known.document_type,
            publication_state=publication_state_of(known.publication_state),
            access_level=AccessLevel(known.access_level).label,
            groups=list(known.groups),
            uri=known.uri,
        )


class DocumentResponse(BaseModel):
    """A live document."""

    document_id: str
    source: str
    revision: str
    content_hash: str = Field(description="hexadecimal SHA-256 of the bytes last put")
    chunks: int
    metadata: MetadataResponse

    @classmethod
    def of(cls, document: ingest_pb2.Document) -> "DocumentResponse":
        return cls(
            document_id=document.document_id,
            source=document.source,
            revision=document.revision,
            content_hash=document.content_hash,
            chunks=document.chunks,
            metadata=MetadataResponse.of(document.metadata),
        )


class DocumentsResponse(BaseModel):
    """Live documents in order of id."""

    documents: list[DocumentResponse]
    next_page_token: str = Field(description="where the next page begins; empty on the last")

    @classmethod
    def of(cls, page: ingest_pb2.ListDocumentsResponse) -> "DocumentsResponse":
        return cls(
            documents=[DocumentResponse.of(document) for document in page.documents],
            next_page_token=page.next_page_token,
        )


class StoredResponse(BaseModel):
    """What became of a document."""

    outcome: str = Field(examples=["added"], description="added, updated or unchanged")
    revision: str
    chunks: int
    embedded: int = Field(description="chunks for which the provider was asked")
    reused: int = Field(description="chunks that kept their earlier vector")
    epoch: int = Field(description="from which readers see it")

    @classmethod
    def of(cls, done: ingest_pb2.PutDocumentResponse) -> "StoredResponse":
        return cls(
            outcome=put_outcome_of(done.outcome),
            revision=done.revision,
            chunks=done.chunks,
            embedded=done.embedded,
            reused=done.reused,
            epoch=done.epoch,
        )


class ChunkResponse(BaseModel):
    """A passage that a document would become."""

    heading_path: list[str]
    text: str
    tokens: int = Field(description="length of what would be embedded, for the embedding model")
    suspected_injection: bool = Field(description="the text resembles instructions to a model")

    @classmethod
    def of(cls, chunk: ingest_pb2.PreviewChunk) -> "ChunkResponse":
        return cls(
            heading_path=list(chunk.passage.heading_path),
            text=passage_text(chunk.passage),
            tokens=chunk.tokens,
            suspected_injection=chunk.passage.suspected_injection,
        )


class PreviewResponse(BaseModel):
    """A document as it would be stored."""

    revision: str
    metadata: MetadataResponse
    chunks: list[ChunkResponse]

    @classmethod
    def of(cls, shown: ingest_pb2.PreviewDocumentResponse) -> "PreviewResponse":
        return cls(
            revision=shown.revision,
            metadata=MetadataResponse.of(shown.metadata),
            chunks=[ChunkResponse.of(chunk) for chunk in shown.chunks],
        )


class HealthResponse(BaseModel):
    """Whether this process takes questions, and which parts do not answer."""

    status: str = Field(examples=["ok"], description="ok, degraded (it still answers) or unready")
    down: list[str] = Field([], examples=[["generate"]], exclude_if=lambda down: not down)


class StatusResponse(BaseModel):
    """What can be had now."""

    answers: bool = Field(description="written ones; without them passages may still be shown")
    search: bool
    documents: bool = Field(description="whether documents can be listed, put and deleted")
    jobs: bool = Field(description="whether questions can be queued, and jobs looked at")


class DimensionResponse(BaseModel):
    """Requests or tokens."""

    limit: float = Field(description="granted in any minute")
    size: float = Field(description="granted at once, after a pause")
    level: float = Field(description="granted now; never below 0")

    @classmethod
    def of(cls, dimension: Dimension) -> "DimensionResponse":
        return cls(limit=dimension.limit, size=dimension.size, level=dimension.level)


class PoolRoomResponse(BaseModel):
    """What one may draw on."""

    requests: DimensionResponse
    tokens: DimensionResponse
    places: int = Field(description="attempts that may run at once")

    @classmethod
    def of(cls, room: PoolRoom) -> "PoolRoomResponse":
        return cls(
            requests=DimensionResponse.of(room.requests),
            tokens=DimensionResponse.of(room.tokens),
            places=room.places,
        )


class PoolResponse(BaseModel):
    """One provider's allowance. In the modes other than shared, this gateway's share of it."""

    name: str = Field(examples=["answers"])
    mode: Mode
    pool: PoolRoomResponse
    batch: PoolRoomResponse = Field(description="the part of it that batch work may take")
    in_flight: dict[str, int] = Field(examples=[{"interactive": 3, "batch": 1}])
    waiting: int = Field(description="attempts promised a start in the near future")
    cooldown: float = Field(description="seconds until anything starts after a throttle")
    opens_in: float = Field(description="seconds until a new pool grants anything")
    ramp: float = Field(description="share of the refill that flows, 0 to 1")

    @classmethod
    def of(cls, name: str, found: Snapshot) -> "PoolResponse":
        return cls(
            name=name,
            mode=found.mode,
            pool=PoolRoomResponse.of(found.pool),
            batch=PoolRoomResponse.of(found.batch),
            in_flight=found.in_flight,
            waiting=found.waiting,
            cooldown=found.cooldown,
            opens_in=found.opens_in,
            ramp=found.ramp,
        )


class RoomResponse(BaseModel):
    """Questions in this gateway, and in all of them."""

    mode: Mode
    in_flight: int
    max_in_flight: int
    waiting: int = Field(description="questions that wait for room")
    shared_in_flight: int | None = Field(description="null while Redis cannot say")
    shared_max_in_flight: int
    refusals: dict[str, int] = Field(
        description="refused here since the start, by reason; CAPACITY counts answers without it",
        examples=[{"NO_ROOM": 2}],
    )


class CapacityResponse(BaseModel):
    """How much of what is granted is left, now."""

    gateway: RoomResponse
    pools: list[PoolResponse]

    @classmethod
    def of(cls, room: RoomLevels, pools: dict[str, Snapshot]) -> "CapacityResponse":
        return cls(
            gateway=RoomResponse(**asdict(room)),
            pools=[PoolResponse.of(name, found) for name, found in pools.items()],
        )
