"""What came of a question, in plain words for people."""

from collections.abc import Mapping

from gateway.outcome import Acceptance, Mode, Outcome, Reason

_WORDS: Mapping[tuple[Mode, Reason], str] = {
    (Mode.GENERATED, Reason.NONE): "written by a model, every citation checked against its source",
    (Mode.EXTRACTIVE, Reason.NONE): "sentences of the sources word for word; no model was asked",
    (Mode.EXTRACTIVE, Reason.MODEL_UNAVAILABLE): (
        "the model does not answer; these are the sources' words"
    ),
    (Mode.EXTRACTIVE, Reason.CAPACITY): (
        "the model's allowance is used up; these are the sources' words"
    ),
    (Mode.EXTRACTIVE, Reason.INVALID_OUTPUT): (
        "the model's answer did not hold against the sources; these are the sources' words"
    ),
    (Mode.EXTRACTIVE, Reason.DEADLINE): "the model took too long; these are the sources' words",
    (Mode.PREVIOUS, Reason.MODEL_UNAVAILABLE): (
        "an earlier answer, {age} old: the model does not answer now"
    ),
    (Mode.PREVIOUS, Reason.CAPACITY): (
        "an earlier answer, {age} old: the model's allowance is used up"
    ),
    (Mode.QUEUED, Reason.REQUESTED): "accepted as a job",
    (Mode.QUEUED, Reason.MODEL_UNAVAILABLE): "accepted as a job: the model does not answer now",
    (Mode.QUEUED, Reason.CAPACITY): "accepted as a job: the model's allowance is used up",
    (Mode.ABSTAINED, Reason.NOTHING_FOUND): "no document that you may read bears on the question",
    (Mode.ABSTAINED, Reason.EVIDENCE_INSUFFICIENT): (
        "the documents that you may read do not answer the question"
    ),
    (Mode.UNAVAILABLE, Reason.MODEL_UNAVAILABLE): "no answer: the model does not answer",
    (Mode.UNAVAILABLE, Reason.CAPACITY): "no answer: the model's allowance is used up",
    (Mode.UNAVAILABLE, Reason.RETRIEVAL_UNAVAILABLE): (
        "no answer: the documents cannot be searched now"
    ),
    (Mode.UNAVAILABLE, Reason.INVALID_OUTPUT): "no answer: what the model wrote did not hold",
    (Mode.UNAVAILABLE, Reason.REFUSED): "no answer: the model or its filter refused",
    (Mode.UNAVAILABLE, Reason.DEADLINE): "no answer: the time was over",
}
# Each unit in seconds, and from how many of them on it is used.
_UNITS = (("days", 86_400, 2), ("h", 3_600, 2), ("min", 60, 2), ("s", 1, 0))


_STORED_REVIEW = "a person has to check it first"
_REVIEW = (
    "written by a model; its sources do not clearly carry it, so a person has to check it first"
)


def plain_words(outcome: Outcome, *, passages: bool) -> str:
    """One line. `passages` says whether some are shown in an answer's stead."""
    said = _WORDS[outcome.mode, outcome.reason].format(age=_span(outcome.age or 0))
    if outcome.acceptance is Acceptance.REVIEW_REQUIRED:
        said = _REVIEW if outcome.mode is Mode.GENERATED else f"{said}; {_STORED_REVIEW}"
    return f"{said}; these are the passages that were found" if passages else said


def _span(seconds: float) -> str:
    whole = ((int(seconds // unit), name, least) for name, unit, least in _UNITS)
    return next(f"{number} {name}" for number, name, least in whole if number >= least)
