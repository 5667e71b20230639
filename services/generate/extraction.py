"""Answering by quoting, where the profile has no model."""

import asyncio
from collections.abc import Sequence

from services.generate.audience import Audience
from services.generate.evidence import Source
from services.generate.extract import Calibration, extract
from services.generate.quotes import Quotable
from services.generate.result import Citation, Result
from services.generate.task import Task
from services.generate.verdict import Abstained, AbstainedReason, Extractive, ExtractiveReason

# Sources are weighed in their order, which is that of their scores, up to so many characters: a
# third of a second on a slow core, and more than a window of 8,192 tokens holds.
MOST_WEIGHED = 100_000


class Extraction:
    """Quotes the sources, or abstains. Asks no provider and needs no allowance."""

    def __init__(self, calibration: Calibration) -> None:
        self._calibration = calibration

    async def answer(self, task: Task, audience: Audience | None = None) -> Result:  # noqa: ARG002 - nothing is shown before all is done
        if not task.sources:
            return Result(Abstained(AbstainedReason.NOTHING_FOUND))
        # Tens of milliseconds of work, which must not hold up the process's other calls.
        quotes = await asyncio.to_thread(
            extract, task.question, _quotable(task.sources), task.scores, self._calibration
        )
        if not quotes:
            return Result(Abstained(AbstainedReason.EVIDENCE_INSUFFICIENT))
        return quoted(quotes)


def _quotable(sources: Sequence[Source]) -> list[Source]:
    """What may be quoted: nothing that resembles instructions, and no more than can be weighed."""
    chosen, characters = [], 0
    for source in sources:
        characters += len(source.text)
        if characters <= MOST_WEIGHED and not source.is_suspected:
            chosen.append(source)
    return chosen


def quoted(quotes: Sequence[Quotable]) -> Result:
    """The quotations one after another, each with its mark."""
    text, citations = "", []
    for before, quote in zip([None, *quotes], quotes, strict=False):
        text += _break(before, quote)
        start = len(text)
        text += f"{quote.text} [{quote.source.label}]"
        citations.append(Citation(quote.source.label, start, len(text), support=1.0))
    return Result(Extractive(ExtractiveReason.NONE), text, tuple(citations))


def _break(before: Quotable | None, quote: Quotable) -> str:
    """Prose of one source reads on; rows, code and other sources begin a line of their own."""
    if before is None:
        return ""
    reads_on = before.source is quote.source and before.is_prose and quote.is_prose
    return " " if reads_on else "\n"
