"""Plain text: blank lines part paragraphs, and nothing else means anything."""

import re

from corpus.points import Kind
from services.ingest.document import Block, Section
from services.ingest.sections import SectionIds
from services.ingest.stop import NEVER, Stop

_PARAGRAPH = re.compile(r"\S(?:.*\S)?(?:[^\S\n]*\n[^\S\n]*\S(?:.*\S)?)*")


def sections(text: str, body: int, stop: Stop = NEVER) -> tuple[Section, ...]:
    """One section of paragraphs from the position `body` on; none when all is blank."""
    blocks: list[Block] = []
    for found in _PARAGRAPH.finditer(text, body):
        stop.check()
        blocks.append(Block(Kind.PARAGRAPH, found.start(), found.end()))
    return (Section(SectionIds().of(()), (), tuple(blocks)),) if blocks else ()
