"""The contract's messages as the domain's nouns, and back."""

import math
from collections.abc import Sequence
from typing import assert_never

from capacity import Workload
from chassis.errors import InvalidInput
from chassis.identity import AccessLevel
from services.generate.audience import Delta, Event, Final, Retracted
from services.generate.evidence import Block, Kind, Scores, Source
from services.generate.outcome import outcome, provenance, retraction
from services.generate.result import Citation, Result, Spent
from services.generate.task import Message, Role, Task
from sluice.answer.v1 import outcome_pb2
from sluice.assemble.v1 import assemble_pb2
from sluice.evidence.v1 import evidence_pb2
from sluice.generate.v1 import generate_pb2 as pb

_KINDS = {
    evidence_pb2.BLOCK_KIND_PARAGRAPH: Kind.PARAGRAPH,
    evidence_pb2.BLOCK_KIND_LIST: Kind.LIST,
    evidence_pb2.BLOCK_KIND_TABLE: Kind.TABLE,
    evidence_pb2.BLOCK_KIND_CODE: Kind.CODE,
}
_LEVELS = {
    # What nobody told is held for what the fewest may read.
    evidence_pb2.ACCESS_LEVEL_UNSPECIFIED: AccessLevel.RESTRICTED,
    evidence_pb2.ACCESS_LEVEL_PUBLIC: AccessLevel.PUBLIC,
    evidence_pb2.ACCESS_LEVEL_TEAM: AccessLevel.TEAM,
    evidence_pb2.ACCESS_LEVEL_RESTRICTED: AccessLevel.RESTRICTED,
}
_WORKLOADS = {evidence_pb2.WORKLOAD_BATCH: Workload.BATCH}
_ROLES = {assemble_pb2.ROLE_SYSTEM: Role.SYSTEM, assemble_pb2.ROLE_USER: Role.USER}


def task(request: pb.GenerateRequest, tenant: str) -> Task:
    """Raises InvalidInput that names the field."""
    meaning, scores = _scores(request)
    found = Task(
        tenant=tenant,
        question=request.question,
        messages=tuple(_message(at, message) for at, message in enumerate(request.messages)),
        sources=tuple(
            _source(at, source, score)
            for at, (source, score) in enumerate(zip(request.sources, scores, strict=True))
        ),
        scores=meaning,
        input_tokens=request.input_tokens,
        instructions_version=request.instructions_version,
        workload=_WORKLOADS.get(request.workload, Workload.INTERACTIVE),
    )
    if len({source.label for source in found.sources}) < len(found.sources):
        raise InvalidInput("two sources have one label", field="sources")
    return found


def response(result: Result) -> pb.GenerateResponse:
    return pb.GenerateResponse(
        outcome=outcome(result.verdict),
        text=result.text,
        citations=[_citation(citation) for citation in result.citations],
        usage=_usage(result.spent),
        provenance=provenance(result.provenance),
    )


def event(told: Event) -> pb.GenerateStreamResponse:
    match told:
        case Delta():
            return pb.GenerateStreamResponse(delta=told.text)
        case Retracted():
            return pb.GenerateStreamResponse(retraction=retraction(told.reason))
        case Final():
            return pb.GenerateStreamResponse(final=response(told.result))
    assert_never(told)


def _message(at: int, message: assemble_pb2.Message) -> Message:
    if message.role not in _ROLES:
        raise InvalidInput("a message needs a role", field=f"messages[{at}].role")
    return Message(_ROLES[message.role], message.content)


def _scores(request: pb.GenerateRequest) -> tuple[Scores, Sequence[float]]:
    """A score for each source: a cosine wherever all of them tell one, whatever they came by."""
    told = [source.score for source in request.sources]
    if request.score_space == evidence_pb2.SCORE_SPACE_COSINE:
        return Scores.COSINE, told
    cosines = [score for source in request.sources if (score := _cosine(source)) is not None]
    return (Scores.COSINE, cosines) if len(cosines) == len(told) else (Scores.OTHER, told)


def _cosine(source: evidence_pb2.Source) -> float | None:
    """The best one among its passages, which a fused search tells beside its scores."""
    return max((each.cosine for each in source.passages if each.HasField("cosine")), default=None)


def _source(at: int, source: evidence_pb2.Source, score: float) -> Source:
    if not source.label:
        raise InvalidInput("a source needs a label", field=f"sources[{at}].label")
    if not math.isfinite(source.score) or not math.isfinite(score):
        raise InvalidInput("the score is not a finite number", field=f"sources[{at}].score")
    return Source(
        label=source.label,
        document=source.document_id,
        title=source.title,
        headings=tuple(source.heading_path),
        text=source.included_text,
        blocks=tuple(_block(block) for block in source.blocks),
        score=score,
        is_suspected=source.suspected_injection,
        level=_LEVELS.get(source.access_level, AccessLevel.RESTRICTED),
    )


def _block(block: evidence_pb2.Block) -> Block:
    return Block(_KINDS.get(block.kind, Kind.PARAGRAPH), block.text, block.context)


def _citation(citation: Citation) -> outcome_pb2.Citation:
    return outcome_pb2.Citation(
        label=citation.label,
        start=citation.start,
        end=citation.end,
        support=citation.support,
    )


def _usage(spent: Spent) -> outcome_pb2.Usage:
    return outcome_pb2.Usage(
        input_tokens=spent.input_tokens,
        output_tokens=spent.output_tokens,
        attempts=spent.attempts,
        model=spent.model,
    )
