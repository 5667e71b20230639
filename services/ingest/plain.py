"""Plain text: blank lines part paragraphs, and nothing else means anything."""

import re

from corpus.points import Kind
from services.ingest.document import Block, Section
from services.ingest.sections import SectionIds

_PARAGRAPH = re.compile(r"\S(?:.*\S)?(?:[^\S\n]*\n[^\S\n]*\S(?:.*\S)?)*")


def sections(text: str, body: int) -> tuple[Section, ...]:
    """One section of paragraphs from the position `body` on; none when all is blank."""
    blocks = tuple(
        Block(Kind.PARAGRAPH, found.start(), found.end())
        for found in _PARAGRAPH.finditer(text, body)
    )
    return (Section(SectionIds().of(()), (), blocks),) if blocks else ()
