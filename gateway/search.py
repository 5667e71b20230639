"""Passages without an answer, which are there while the model is not."""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Generic, Protocol

import structlog

from chassis.errors import DeadlineExceeded, Exhausted, SluiceError, Unavailable
from gateway.admission import Stand
from gateway.answer import P
from gateway.flow import OUTAGES
from gateway.outcome import Reason
from gateway.question import Question

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Counts:
    """Passages that the index returned, those of them above the threshold, those handed on."""

    candidates: int
    passed_threshold: int
    returned: int


@dataclass(frozen=True, slots=True)
class Matches(Generic[P]):
    """What the caller may read that bears on a question, best first."""

    passages: Sequence[P]
    score_space: str
    epoch: int
    counts: Counts


class Finding(Protocol[P]):
    async def search(self, question: Question, limit: int) -> Matches[P]: ...


class Search(Generic[P]):
    """Lets callers in as `admit` does and finds passages for them."""

    def __init__(
        self,
        admit: Callable[[Stand], AbstractAsyncContextManager[None]],
        finding: Finding[P],
    ) -> None:
        self._admit = admit
        self._finding = finding

    async def find(
        self, question: Question, limit: int, stand: Stand = lambda _: None
    ) -> Matches[P]:
        """At most `limit` passages for the current caller, at 0 as many as retrieve sees fit.

        Raises what the admission raises, what the caller can mend, and one of OUTAGES.
        """
        async with self._admit(stand):
            try:
                found = await self._finding.search(question, limit)
            except OUTAGES as error:
                log.warning("stage_unavailable", stage="retrieve", reason=error.reason)
                raise _outage(error) from error
        log.info("searched", returned=found.counts.returned)
        return found


def _outage(error: SluiceError) -> SluiceError:
    """The outage without the words of the stage."""
    if isinstance(error, DeadlineExceeded):
        return DeadlineExceeded("the time for this search is over", reason=Reason.DEADLINE)
    if isinstance(error, Exhausted):
        return Exhausted(
            "there is no capacity for this search now",
            reason=Reason.CAPACITY,
            retry_after=error.retry_after,
        )
    return Unavailable(
        "the documents cannot be searched now",
        reason=Reason.RETRIEVAL_UNAVAILABLE,
        retry_after=error.retry_after,
    )
