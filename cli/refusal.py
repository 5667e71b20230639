"""Why a document did not go in, in words for the person who has to mend it."""

from dataclasses import dataclass

from chassis.errors import InvalidInput, SluiceError


@dataclass(frozen=True, slots=True)
class Refusal:
    """`line` is empty when the reason has no line."""

    document_id: str
    line: str
    reason: str


def refusal(document_id: str, error: SluiceError) -> Refusal:
    """The refusal in a stage's error."""
    reason = error.message.removeprefix("ingest: ")
    if isinstance(error, InvalidInput) and error.field and error.field not in reason:
        reason = f"{error.field}: {reason}"
    return Refusal(document_id, error.metadata.get("line", ""), reason)
