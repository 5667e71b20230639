"""What is written down of a job, in the contract's own messages, which outlive a release."""

from google.protobuf.message import DecodeError
from google.protobuf.timestamp_pb2 import Timestamp

from chassis.errors import Internal, InvalidInput
from gateway.answer import Answer, Written
from gateway.jobs.job import Deferral, Job, State
from gateway.question import Question
from gateway.wire import (
    citations_of,
    filters_message,
    outcome_of,
    provenance_of,
    question_of,
    response,
    score_space_of,
    usage_of,
)
from sluice.answer.v1 import answer_pb2
from sluice.evidence.v1.evidence_pb2 import Source


def question_bytes(question: Question) -> bytes:
    """The same for the same question."""
    request = answer_pb2.AskRequest(
        question=question.text,
        filters=filters_message(question.filters),
        locale=question.locale,
    )
    return request.SerializeToString(deterministic=True)


def question_in(written: bytes) -> Question:
    """The question, checked by the rules of now. Raises InvalidInput."""
    try:
        return question_of(answer_pb2.AskRequest.FromString(written))
    except DecodeError as error:
        raise InvalidInput("the question cannot be read", field="question") from error


def answer_bytes(answer: Answer[Source]) -> bytes:
    return response(answer).SerializeToString()


def answer_in(written: bytes) -> Answer[Source]:
    """Raises Internal for what is no answer."""
    try:
        return _answer_of(answer_pb2.AskResponse.FromString(written))
    except (DecodeError, ValueError) as error:
        raise Internal("an answer was kept that the contract does not know") from error


def _answer_of(kept: answer_pb2.AskResponse) -> Answer[Source]:
    timings = {one.stage: one.elapsed.ToNanoseconds() / 1e9 for one in kept.timings}
    return Answer(
        answer_id=kept.answer_id,
        written=Written(
            outcome_of(kept.outcome),
            kept.text,
            citations_of(kept.citations),
            usage_of(kept.usage),
            provenance_of(kept.provenance),
        ),
        sources=list(kept.sources),
        timings=timings,
        elapsed=sum(timings.values()),
        instructions_version=kept.instructions_version,
        score_space=score_space_of(kept.score_space),
        epoch=kept.epoch,
    )


def deferral_of(request: answer_pb2.AskRequest) -> Deferral | None:
    """The caller's consent to a job, if there is one. Raises InvalidInput that names the field."""
    if not request.HasField("deferral"):
        return None
    asked = request.deferral
    wait = asked.wait.ToNanoseconds() / 1e9 if asked.HasField("wait") else None
    try:
        return Deferral(wait, asked.idempotency_key, asked.supersedes)
    except InvalidInput as error:
        name = "idempotency_key" if error.field == "Idempotency-Key" else error.field
        raise InvalidInput(error.message, field=f"deferral.{name}") from error


def job_message(job: Job[Source]) -> answer_pb2.Job:
    return answer_pb2.Job(
        job_id=job.id,
        state=_state_number(job.state),
        accept_time=_moment(job.accepted),
        expire_time=_moment(job.expires),
        attempts=job.attempts,
        reason=job.reason,
        superseded_by=job.superseded_by,
        answer=None if job.answer is None else response(job.answer),
    )


def _state_number(state: State) -> answer_pb2.JobState.ValueType:
    return answer_pb2.JobState.Value(f"JOB_STATE_{state.name}")


def _moment(seconds: float) -> Timestamp:
    moment = Timestamp()
    moment.FromMilliseconds(round(seconds * 1e3))
    return moment
