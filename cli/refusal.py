"""Why a document did not go in, in words for the person who has to mend it."""

from dataclasses import dataclass

from chassis.errors import SluiceError


@dataclass(frozen=True, slots=True)
class Refusal:
    """`line` is empty when the reason has no line."""

    document_id: str
    line: str
    reason: str


def refusal(document_id: str, error: SluiceError) -> Refusal:
    """The refusal in a stage's error, without what stands in the table's other columns."""
    line = error.metadata.get("line", "")
    reason = error.message.removeprefix("ingest: ")
    for place in (f"{document_id}, line {line}: ", f"{document_id}: "):
        reason = reason.removeprefix(place)
    return Refusal(document_id, line, reason)
