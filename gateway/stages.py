"""The stages over gRPC, as the gateway's own rules want them."""

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from chassis.errors import Internal, InvalidInput, Unavailable
from gateway.answer import Found, Message, Prompt, Written
from gateway.documents import BrokenOff, Heading
from gateway.line import Line
from gateway.question import Question
from gateway.search import Counts, Matches
from gateway.telling import Telling
from gateway.wire import (
    citations_of,
    filters_message,
    header_message,
    outcome_of,
    passage_text,
    provenance_of,
    retraction_reason_of,
    score_space_number,
    score_space_of,
    usage_of,
)
from sluice.assemble.v1 import assemble_pb2, assemble_pb2_grpc
from sluice.evidence.v1.evidence_pb2 import (
    WORKLOAD_BATCH,
    WORKLOAD_INTERACTIVE,
    Passage,
    Source,
    Workload,
)
from sluice.generate.v1 import generate_pb2, generate_pb2_grpc
from sluice.ingest.v1 import ingest_pb2, ingest_pb2_grpc
from sluice.retrieve.v1 import retrieve_pb2, retrieve_pb2_grpc

BATCH, INTERACTIVE = WORKLOAD_BATCH, WORKLOAD_INTERACTIVE

K = TypeVar("K")


class Retrieve:
    """Asks the retrieve stage."""

    def __init__(self, line: Line, workload: Workload.ValueType = INTERACTIVE) -> None:
        self._line = line
        self._workload = workload
        self._stub = retrieve_pb2_grpc.RetrieveServiceStub(line.channel)

    async def retrieve(self, question: Question) -> Found[Passage]:
        request = retrieve_pb2.RetrieveRequest(
            question=question.text,
            filters=filters_message(question.filters),
            workload=self._workload,
        )
        found = await self._line.call(self._stub.Retrieve, request)
        return Found(found.passages, score_space_of(found.score_space), found.epoch)

    async def search(self, question: Question, limit: int) -> Matches[Passage]:
        request = retrieve_pb2.RetrieveRequest(
            question=question.text, filters=filters_message(question.filters), top_k=limit
        )
        found = await self._line.call(self._stub.Retrieve, request)
        counts = found.counts
        return Matches(
            found.passages,
            score_space_of(found.score_space),
            found.epoch,
            Counts(counts.candidates, counts.passed_threshold, counts.returned),
        )

    async def gone(
        self, question: Question, epoch: int, sources: Sequence[Source]
    ) -> frozenset[str]:
        request = retrieve_pb2.CheckPassagesRequest(
            epoch=epoch,
            point_ids=[passage.point_id for source in sources for passage in source.passages],
            publication_states=filters_message(question.filters).publication_states,
        )
        gone = set((await self._line.call(self._stub.CheckPassages, request)).gone)
        return frozenset(
            source.label
            for source in sources
            if not gone.isdisjoint(passage.point_id for passage in source.passages)
        )


class Assemble:
    """Asks the assemble stage."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._stub = assemble_pb2_grpc.AssembleServiceStub(line.channel)

    async def assemble(self, question: Question, found: Found[Passage]) -> Prompt[Source]:
        request = assemble_pb2.AssembleRequest(
            question=question.text, candidates=found.passages, locale=question.locale
        )
        built = await self._line.call(self._stub.Assemble, request)
        return Prompt(
            messages=[Message(message.role, message.content) for message in built.messages],
            sources=built.sources,
            input_tokens=built.input_tokens,
            instructions_version=built.instructions_version,
            score_space=found.score_space,
        )

    def as_found(self, passages: Sequence[Passage]) -> Sequence[Source]:
        return [_source(f"S{rank}", passage) for rank, passage in enumerate(passages, start=1)]


class Generate:
    """Asks the generate stage."""

    def __init__(self, line: Line, workload: Workload.ValueType = INTERACTIVE) -> None:
        self._line = line
        self._workload = workload
        self._stub = generate_pb2_grpc.GenerateServiceStub(line.channel)

    async def generate(self, question: Question, prompt: Prompt[Source]) -> Written:
        task = _task(question, prompt, self._workload)
        return _written(await self._line.call(self._stub.Generate, task))

    async def stream(
        self, question: Question, prompt: Prompt[Source], telling: Telling[Source]
    ) -> Written:
        task = _task(question, prompt, self._workload)
        request = generate_pb2.GenerateStreamRequest(task=task)
        written = None
        async with self._line.stream(self._stub.GenerateStream, request) as events:
            async for event in events:
                match event.WhichOneof("event"):
                    case "delta":
                        await telling.delta(event.delta)
                    case "retraction":
                        await telling.retract(retraction_reason_of(event.retraction))
                    case "final":
                        written = _written(event.final)
            if written is None:
                raise Unavailable("generate broke off", reason="STREAM_CUT")
        return written


class Ingest:
    """Asks the ingest stage."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._stub: ingest_pb2_grpc.IngestServiceAsyncStub = ingest_pb2_grpc.IngestServiceStub(
            line.channel
        )

    async def page(self, source: str, size: int, token: str) -> ingest_pb2.ListDocumentsResponse:
        request = ingest_pb2.ListDocumentsRequest(source=source, page_size=size, page_token=token)
        with _as_sent():
            return await self._line.call(self._stub.ListDocuments, request)

    async def put(
        self, heading: Heading, parts: AsyncIterator[bytes]
    ) -> ingest_pb2.PutDocumentResponse:
        requests = _requests(ingest_pb2.PutDocumentRequest, header_message(heading), parts)
        with _as_sent():
            return await self._line.call(self._stub.PutDocument, requests)

    async def preview(
        self, heading: Heading, parts: AsyncIterator[bytes]
    ) -> ingest_pb2.PreviewDocumentResponse:
        requests = _requests(ingest_pb2.PreviewDocumentRequest, header_message(heading), parts)
        with _as_sent():
            return await self._line.call(self._stub.PreviewDocument, requests)

    async def delete(self, document_id: str) -> bool:
        request = ingest_pb2.DeleteDocumentRequest(document_id=document_id)
        with _as_sent():
            return (await self._line.call(self._stub.DeleteDocument, request)).deleted


async def _requests(
    kind: Callable[..., K], header: ingest_pb2.DocumentHeader, parts: AsyncIterator[bytes]
) -> AsyncIterator[K]:
    yield kind(header=header)
    try:
        async for part in parts:
            yield kind(data=part)
    except BrokenOff:
        # A call that is cancelled can look to ingest as if the document were complete. A second
        # header is refused for certain.
        yield kind(header=header)


@contextmanager
def _as_sent() -> Iterator[None]:
    """Name fields as HTTP callers write them."""
    try:
        yield
    except InvalidInput as error:
        field = error.field.removeprefix("header.").removeprefix("metadata.")
        field = {"data": "body", "format": "Content-Type"}.get(field, field)
        raise InvalidInput(error.message, field=field, reason=error.reason) from error


def _task(
    question: Question, prompt: Prompt[Source], workload: Workload.ValueType
) -> generate_pb2.GenerateRequest:
    return generate_pb2.GenerateRequest(
        question=question.text,
        messages=[
            assemble_pb2.Message(
                role=assemble_pb2.Role.ValueType(message.role), content=message.content
            )
            for message in prompt.messages
        ],
        sources=prompt.sources,
        input_tokens=prompt.input_tokens,
        instructions_version=prompt.instructions_version,
        score_space=score_space_number(prompt.score_space),
        workload=workload,
    )


def _written(reply: generate_pb2.GenerateResponse) -> Written:
    try:
        outcome = outcome_of(reply.outcome)
    except ValueError as error:
        raise Internal("generate sent an outcome outside the contract") from error
    return Written(
        outcome,
        reply.text,
        citations_of(reply.citations),
        usage_of(reply.usage),
        provenance_of(reply.provenance),
    )


def _source(label: str, passage: Passage) -> Source:
    return Source(
        label=label,
        document_id=passage.document_id,
        revision=passage.revision,
        title=passage.title,
        version=passage.version,
        section_id=passage.section_id,
        heading_path=passage.heading_path,
        included_text=passage_text(passage),
        blocks=passage.blocks,
        passages=[passage],
        score=passage.score,
        uri=passage.uri,
        access_level=passage.access_level,
        suspected_injection=passage.suspected_injection,
    )
