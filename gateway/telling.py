"""What a caller is told while an answer comes about: no shown text outlives its verdict."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b
from typing import Generic, TypeAlias

from gateway import measures
from gateway.answer import Answer, S
from gateway.outcome import Reason


class RetractionReason(StrEnum):
    INVALID_OUTPUT = "INVALID_OUTPUT"
    INTERRUPTED = "INTERRUPTED"
    REFUSED = "REFUSED"
    DEADLINE = "DEADLINE"
    EVIDENCE_CHANGED = "EVIDENCE_CHANGED"


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage begins, or ended after `elapsed` seconds."""

    name: str
    elapsed: float | None = None


@dataclass(frozen=True, slots=True)
class Delta:
    """Text to append to what was shown, provisional until the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class Retraction:
    """Everything shown is withdrawn; no delta follows."""

    reason: RetractionReason


Event: TypeAlias = Stage | Delta | Retraction | Answer[S]
Tell: TypeAlias = Callable[[Event[S]], Awaitable[None]]

# Why text is withdrawn that an outcome with this reason does not carry.
_WITHDRAWN: Mapping[Reason, RetractionReason] = {
    Reason.MODEL_UNAVAILABLE: RetractionReason.INTERRUPTED,
    Reason.CAPACITY: RetractionReason.INTERRUPTED,
    Reason.REFUSED: RetractionReason.REFUSED,
    Reason.DEADLINE: RetractionReason.DEADLINE,
    Reason.RETRIEVAL_UNAVAILABLE: RetractionReason.EVIDENCE_CHANGED,
}


class Telling(Generic[S]):
    """One answer's events in their order, to whoever listens; to nobody without `tell`.

    Whatever the stages say: deltas end with a retraction, and text that was shown is either the
    answer's own or retracted.
    """

    def __init__(self, tell: Tell[S] | None) -> None:
        self.heard = tell is not None
        self._tell = tell
        self._shown = False
        # Of all that was shown, which itself is not kept while thousands are told something.
        self._digest = blake2b()
        self._retracted = False

    async def stage(self, name: str, elapsed: float | None = None) -> None:
        await self._say(Stage(name, elapsed))

    async def delta(self, text: str) -> None:
        if text and not self._retracted:
            self._shown = True
            self._digest.update(_bytes(text))
            await self._say(Delta(text))

    async def retract(self, reason: RetractionReason) -> None:
        """Withdraw what was shown, if anything was and still is."""
        if self._shown and not self._retracted:
            self._retracted = True
            measures.retracted(reason)
            await self._say(Retraction(reason))

    async def answer(self, answer: Answer[S]) -> None:
        """The last event."""
        written = answer.written
        if self._digest.digest() != blake2b(_bytes(written.text)).digest():
            why = _WITHDRAWN.get(written.outcome.reason, RetractionReason.INVALID_OUTPUT)
            await self.retract(why)
        await self._say(answer)

    async def _say(self, event: Event[S]) -> None:
        if self._tell:
            await self._tell(event)


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogatepass")
