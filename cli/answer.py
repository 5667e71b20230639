"""An answer on the terminal: the text, its sources, what came of it in plain words, the time."""

from collections.abc import Mapping

from cli.gateway_service import Answer, Source
from cli.output import Output, titled

WORDS: Mapping[tuple[str, str], str] = {
    ("GENERATED", "NONE"): "written by a model, every citation checked against its source",
    ("EXTRACTIVE", "NONE"): "sentences of the sources word for word; no model was asked",
    ("EXTRACTIVE", "MODEL_UNAVAILABLE"): "the model does not answer; these are the sources' words",
    ("EXTRACTIVE", "CAPACITY"): "the model's allowance is used up; these are the sources' words",
    ("EXTRACTIVE", "INVALID_OUTPUT"): (
        "the model's answer did not hold against the sources; these are the sources' words"
    ),
    ("EXTRACTIVE", "DEADLINE"): "the model took too long; these are the sources' words",
    ("PREVIOUS", "MODEL_UNAVAILABLE"): "an earlier answer: the model does not answer now",
    ("PREVIOUS", "CAPACITY"): "an earlier answer: the model's allowance is used up",
    ("QUEUED", "REQUESTED"): "accepted as a job",
    ("QUEUED", "MODEL_UNAVAILABLE"): "accepted as a job: the model does not answer now",
    ("QUEUED", "CAPACITY"): "accepted as a job: the model's allowance is used up",
    ("ABSTAINED", "NOTHING_FOUND"): "no document that you may read bears on the question",
    ("ABSTAINED", "EVIDENCE_INSUFFICIENT"): (
        "the documents that you may read do not answer the question"
    ),
    ("UNAVAILABLE", "MODEL_UNAVAILABLE"): "no answer: the model does not answer",
    ("UNAVAILABLE", "CAPACITY"): "no answer: the model's allowance is used up",
    ("UNAVAILABLE", "RETRIEVAL_UNAVAILABLE"): "no answer: the documents cannot be searched now",
    ("UNAVAILABLE", "INVALID_OUTPUT"): "no answer: what the model wrote did not hold",
    ("UNAVAILABLE", "REFUSED"): "no answer: the model or its filter refused",
    ("UNAVAILABLE", "DEADLINE"): "no answer: the time was over",
}


def plain_words(answer: Answer) -> str:
    """What came of the question, for people."""
    return WORDS.get((answer.mode, answer.reason), "an outcome that this version does not know")


def show(output: Output, answer: Answer) -> None:
    if answer.text:
        output.line(answer.text)
        output.line()
    output.line(f"{answer.mode} {answer.reason}: {plain_words(answer)}", style="bold")
    if answer.acceptance == "REVIEW_REQUIRED":
        output.line("A person has to look at this answer before it is used.", style="yellow")
    for source in shown_sources(answer):
        output.line(f"[{source.label}] {described(source)}", style="cyan")
    spent = ", ".join(f"{name} {spent:,.0f} ms" for name, spent in answer.timings.items())
    output.line(f"time: {spent}", style="dim")


def shown_sources(answer: Answer) -> list[Source]:
    """The cited sources; all of them when there is no text to cite them."""
    return [one for one in answer.sources if one.label in answer.cited or not answer.text]


def described(source: Source) -> str:
    version = f", version {source.version}" if source.version else ""
    where = " / ".join(source.heading_path)
    link = f" {source.uri}" if source.uri else ""
    name = titled(source.document_id, where or source.title)
    return f"{name}{version} (score {source.score:.3f}){link}"
