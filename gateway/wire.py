"""The contract's messages to the gateway's nouns and back, for both sides of the gateway."""

from collections.abc import Iterable

from google.protobuf.duration_pb2 import Duration

from chassis.errors import Internal, InvalidInput
from chassis.identity import AccessLevel
from gateway.answer import Answer, Citation, Provenance, SwitchReason, Usage
from gateway.documents import Heading
from gateway.outcome import Acceptance, Mode, Outcome, Reason
from gateway.question import Filters, PublicationState, Question
from gateway.telling import Delta, Event, Retraction, RetractionReason, Stage
from sluice.answer.v1 import answer_pb2, outcome_pb2
from sluice.evidence.v1 import evidence_pb2
from sluice.ingest.v1 import ingest_pb2
from sluice.retrieve.v1 import retrieve_pb2

_STATES = {
    PublicationState.DRAFT: evidence_pb2.PUBLICATION_STATE_DRAFT,
    PublicationState.PUBLISHED: evidence_pb2.PUBLICATION_STATE_PUBLISHED,
}
_STATE_NAMES = {number: state for state, number in _STATES.items()}
_WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
_FORMATS = {
    "": ingest_pb2.DOCUMENT_FORMAT_UNSPECIFIED,
    "text/markdown": ingest_pb2.DOCUMENT_FORMAT_MARKDOWN,
    "text/plain": ingest_pb2.DOCUMENT_FORMAT_TEXT,
    "text/html": ingest_pb2.DOCUMENT_FORMAT_HTML,
    "application/pdf": ingest_pb2.DOCUMENT_FORMAT_PDF,
    _WORD: ingest_pb2.DOCUMENT_FORMAT_DOCX,
}
MEDIA_TYPES = tuple(filter(None, _FORMATS))
_SCORE_SPACE = "SCORE_SPACE_"
_SWITCH = "SWITCH_REASON_"
_RETRACTION = "RETRACTION_REASON_"


def question_of(request: answer_pb2.AskRequest) -> Question:
    """The question in a request. Raises InvalidInput that names the field."""
    filters = request.filters
    return Question(
        request.question,
        Filters(
            tuple(filters.document_types),
            tuple(filters.document_ids),
            tuple(filters.areas),
            tuple(_states(filters.publication_states)),
        ),
        request.locale,
    )


def _states(numbers: Iterable[int]) -> Iterable[PublicationState]:
    for position, number in enumerate(numbers):
        state = _STATE_NAMES.get(evidence_pb2.PublicationState.ValueType(number))
        if state is None:
            where = f"filters.publication_states[{position}]"
            raise InvalidInput("a publication state is draft or published", field=where)
        yield state


def filters_message(filters: Filters) -> retrieve_pb2.Filters:
    return retrieve_pb2.Filters(
        document_types=filters.document_types,
        document_ids=filters.document_ids,
        areas=filters.areas,
        publication_states=[_STATES[state] for state in filters.publication_states],
    )


def header_message(heading: Heading) -> ingest_pb2.DocumentHeader:
    """Raises InvalidInput that names the field."""
    state, level = heading.publication_state, heading.access_level
    return ingest_pb2.DocumentHeader(
        document_id=heading.document_id,
        format=_FORMATS[heading.media_type],
        source=heading.source,
        metadata=ingest_pb2.DocumentMetadata(
            title=heading.title,
            version=heading.version,
            area=heading.area,
            document_type=heading.document_type,
            publication_state=None if state is None else _state_number(state),
            access_level=None if level is None else _level_number(level),
            groups=heading.groups,
            uri=heading.uri,
        ),
    )


def _state_number(name: str) -> evidence_pb2.PublicationState.ValueType:
    if name not in list(PublicationState):
        raise InvalidInput("a publication state is draft or published", field="publication_state")
    return _STATES[PublicationState(name)]


def _level_number(name: str) -> evidence_pb2.AccessLevel.ValueType:
    try:
        return evidence_pb2.AccessLevel.ValueType(AccessLevel.parse(name))
    except ValueError as error:
        raise InvalidInput(
            "an access level is public, team or restricted", field="access_level"
        ) from error


def put_outcome_of(number: ingest_pb2.PutOutcome.ValueType) -> str:
    """added, updated or unchanged. Raises Internal for anything else."""
    if number not in ingest_pb2.PutOutcome.values() or not number:
        raise Internal("ingest sent an outcome outside the contract")
    return ingest_pb2.PutOutcome.Name(number).removeprefix("PUT_OUTCOME_").lower()


def publication_state_of(number: evidence_pb2.PublicationState.ValueType) -> str:
    """Empty when it is not said or not known."""
    return _STATE_NAMES.get(number, "")


def passage_text(passage: evidence_pb2.Passage) -> str:
    """The passage as it can be read alone, with what is repeated from elsewhere."""
    texts = ("\n".join(filter(None, (block.context, block.text))) for block in passage.blocks)
    return "\n\n".join(texts)


def score_space_of(number: evidence_pb2.ScoreSpace.ValueType) -> str:
    """Name of a score space, such as COSINE; empty when it is not said or not known."""
    if number not in evidence_pb2.ScoreSpace.values() or not number:
        return ""
    return evidence_pb2.ScoreSpace.Name(number).removeprefix(_SCORE_SPACE)


def score_space_number(name: str) -> evidence_pb2.ScoreSpace.ValueType:
    return evidence_pb2.ScoreSpace.Value(_SCORE_SPACE + (name or "UNSPECIFIED"))


def response(answer: Answer[evidence_pb2.Source]) -> answer_pb2.AskResponse:
    written = answer.written
    return answer_pb2.AskResponse(
        answer_id=answer.answer_id,
        outcome=outcome_message(written.outcome),
        text=written.text,
        citations=[
            outcome_pb2.Citation(
                label=mark.label, start=mark.start, end=mark.end, support=mark.support
            )
            for mark in written.citations
        ],
        sources=answer.sources,
        usage=outcome_pb2.Usage(
            input_tokens=written.usage.input_tokens,
            output_tokens=written.usage.output_tokens,
            attempts=written.usage.attempts,
            model=written.usage.model,
        ),
        timings=[
            answer_pb2.StageTiming(stage=stage, elapsed=_duration(seconds))
            for stage, seconds in answer.timings.items()
        ],
        instructions_version=answer.instructions_version,
        score_space=score_space_number(answer.score_space),
        epoch=answer.epoch,
        provenance=_provenance_message(written.provenance),
    )


def event_message(event: Event[evidence_pb2.Source]) -> answer_pb2.AskStreamResponse:
    match event:
        case Stage():
            took = None if event.elapsed is None else _duration(event.elapsed)
            progress = answer_pb2.StageProgress(stage=event.name, elapsed=took)
            return answer_pb2.AskStreamResponse(stage=progress)
        case Delta():
            return answer_pb2.AskStreamResponse(delta=event.text)
        case Retraction():
            number = outcome_pb2.RetractionReason.Value(f"{_RETRACTION}{event.reason}")
            return answer_pb2.AskStreamResponse(retraction=outcome_pb2.Retraction(reason=number))
        case Answer():
            return answer_pb2.AskStreamResponse(answer=response(event))


def retraction_reason_of(message: outcome_pb2.Retraction) -> RetractionReason:
    """Why text is withdrawn. Withdrawn it is also when the reason is not said or not known."""
    if message.reason not in outcome_pb2.RetractionReason.values() or not message.reason:
        return RetractionReason.INVALID_OUTPUT
    name = outcome_pb2.RetractionReason.Name(message.reason)
    return RetractionReason(name.removeprefix(_RETRACTION))


def provenance_of(message: outcome_pb2.Provenance) -> Provenance:
    aged = message.HasField("cached_age")
    return Provenance(
        candidate=message.candidate,
        switch_reason=_switch_reason_of(message.switch_reason),
        schema_constrained=message.schema_constrained,
        repaired=message.repaired,
        cached_age=message.cached_age.ToTimedelta().total_seconds() if aged else None,
    )


def _switch_reason_of(number: outcome_pb2.SwitchReason.ValueType) -> SwitchReason | None:
    if number not in outcome_pb2.SwitchReason.values() or not number:
        return None
    return SwitchReason(outcome_pb2.SwitchReason.Name(number).removeprefix(_SWITCH))


def _provenance_message(provenance: Provenance) -> outcome_pb2.Provenance:
    age = provenance.cached_age
    return outcome_pb2.Provenance(
        candidate=provenance.candidate,
        switch_reason=outcome_pb2.SwitchReason.Value(
            f"{_SWITCH}{provenance.switch_reason or 'UNSPECIFIED'}"
        ),
        schema_constrained=provenance.schema_constrained,
        repaired=provenance.repaired,
        cached_age=None if age is None else _duration(age),
    )


def citations_of(marks: Iterable[outcome_pb2.Citation]) -> list[Citation]:
    return [Citation(mark.label, mark.start, mark.end, mark.support) for mark in marks]


def usage_of(usage: outcome_pb2.Usage) -> Usage:
    return Usage(
        usage.input_tokens if usage.HasField("input_tokens") else None,
        usage.output_tokens if usage.HasField("output_tokens") else None,
        usage.attempts,
        usage.model,
    )


def outcome_of(message: outcome_pb2.Outcome) -> Outcome:
    """The outcome in a message. Raises ValueError for one outside the contract."""
    match message.WhichOneof("mode"):
        case "generated":
            acceptance = _acceptance_of(message.generated.acceptance)
            return Outcome(Mode.GENERATED, Reason.NONE, acceptance)
        case "extractive":
            reason = outcome_pb2.ExtractiveReason.Name(message.extractive.reason)
            return Outcome(Mode.EXTRACTIVE, _reason_of(reason), Acceptance.ACCEPTED)
        case "previous":
            reason = outcome_pb2.PreviousReason.Name(message.previous.reason)
            acceptance = _acceptance_of(message.previous.acceptance)
            age = message.previous.age.ToTimedelta().total_seconds()
            return Outcome(Mode.PREVIOUS, _reason_of(reason), acceptance, age=age)
        case "queued":
            reason = outcome_pb2.QueuedReason.Name(message.queued.reason)
            return Outcome(Mode.QUEUED, _reason_of(reason), job_id=message.queued.job_id)
        case "abstained":
            reason = outcome_pb2.AbstainedReason.Name(message.abstained.reason)
            return Outcome(Mode.ABSTAINED, _reason_of(reason))
        case "unavailable":
            reason = outcome_pb2.UnavailableReason.Name(message.unavailable.reason)
            return Outcome(Mode.UNAVAILABLE, _reason_of(reason))
    raise ValueError("an outcome without a mode")


def _reason_of(name: str) -> Reason:
    _, _, word = name.partition("_REASON_")
    return Reason(word)


def _acceptance_of(number: outcome_pb2.Acceptance.ValueType) -> Acceptance:
    return Acceptance(outcome_pb2.Acceptance.Name(number).removeprefix("ACCEPTANCE_"))


def outcome_message(outcome: Outcome) -> outcome_pb2.Outcome:
    reason = f"{outcome.mode}_REASON_{outcome.reason}"
    match outcome.mode:
        case Mode.GENERATED:
            generated = outcome_pb2.Generated(acceptance=_acceptance_number(outcome.acceptance))
            return outcome_pb2.Outcome(generated=generated)
        case Mode.EXTRACTIVE:
            extractive = outcome_pb2.Extractive(reason=outcome_pb2.ExtractiveReason.Value(reason))
            return outcome_pb2.Outcome(extractive=extractive)
        case Mode.PREVIOUS:
            previous = outcome_pb2.Previous(
                reason=outcome_pb2.PreviousReason.Value(reason),
                acceptance=_acceptance_number(outcome.acceptance),
                age=_duration(outcome.age or 0),
            )
            return outcome_pb2.Outcome(previous=previous)
        case Mode.QUEUED:
            number = outcome_pb2.QueuedReason.Value(reason)
            queued = outcome_pb2.Queued(reason=number, job_id=outcome.job_id)
            return outcome_pb2.Outcome(queued=queued)
        case Mode.ABSTAINED:
            abstained = outcome_pb2.Abstained(reason=outcome_pb2.AbstainedReason.Value(reason))
            return outcome_pb2.Outcome(abstained=abstained)
        case Mode.UNAVAILABLE:
            missing = outcome_pb2.Unavailable(reason=outcome_pb2.UnavailableReason.Value(reason))
            return outcome_pb2.Outcome(unavailable=missing)


def _acceptance_number(acceptance: Acceptance | None) -> outcome_pb2.Acceptance.ValueType:
    return outcome_pb2.Acceptance.Value(f"ACCEPTANCE_{acceptance}")


def _duration(seconds: float) -> Duration:
    duration = Duration()
    duration.FromNanoseconds(round(seconds * 1e9))
    return duration
