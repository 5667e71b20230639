"""What of an answer may be shown while the model is still writing it."""

from collections.abc import Sequence
from typing import Literal

from services.generate.cite import Carriers
from services.generate.contract import InvalidOutput
from services.generate.evidence import Source
from services.generate.marks import Marks, Piece, Statement, Statements
from services.generate.partial import Partial


class Release:
    """Takes one attempt's reply as it comes, and gives the text that may be shown.

    By sentence, a sentence is shown with the marks that follow it, once its sources carry it by
    `floor`, 0 to 1; one without marks is shown with the next that has some. The first that falls
    below the floor ends it. By token, all is shown but what may become a mark. What is held at the
    reply's end waits for the verdict on the whole.
    """

    def __init__(
        self, sources: Sequence[Source], *, floor: float, by: Literal["sentence", "token"]
    ) -> None:
        self._reply = Partial()
        self._marks = Marks()
        self._admitted = frozenset(source.label for source in sources)
        self._shown = Tokens() if by == "token" else Sentences(sources, floor)
        # The text may come before the status, which decides whether it is ever shown.
        self._early: list[str] = []

    def take(self, delta: str) -> str:
        """The text that may be shown now. Raises InvalidOutput once nothing can mend the reply."""
        self._early.append(self._reply.take(delta))
        if self._reply.status != "answered":
            return ""
        told = "".join(self._early)
        self._early.clear()
        return self._shown.take(self._admitted_in(self._marks.take(told)))

    def _admitted_in(self, pieces: list[Piece]) -> list[Piece]:
        if not all(self._admitted.issuperset(piece.labels) for piece in pieces):
            raise InvalidOutput("a source that was not admitted")
        return pieces


class Tokens:
    """Shows everything."""

    def take(self, pieces: Sequence[Piece]) -> str:
        return "".join(piece.text for piece in pieces)


class Sentences:
    """Shows sentences that their sources carry, up to the first that they do not."""

    def __init__(self, sources: Sequence[Source], floor: float) -> None:
        self._carriers = Carriers(sources)
        self._floor = floor
        self._statements = Statements()
        # Sentences that wait for a mark, and every label until now.
        self._waiting: list[Statement] = []
        self._labels: dict[str, None] = {}
        self._held: list[str] = []
        self._at = 0
        self._is_stopped = False

    def take(self, pieces: Sequence[Piece]) -> str:
        if self._is_stopped:
            return ""
        self._held += [piece.text for piece in pieces]
        return "".join([self._marked(told) for told in self._statements.take(pieces)])

    def _marked(self, told: Statement) -> str:
        self._waiting.append(told)
        self._labels |= dict.fromkeys(told.labels)
        return self._judged() if told.labels else ""

    def _judged(self) -> str:
        end = self._at
        for told in self._waiting:
            carried = self._carriers.support(told, told.labels or self._labels)
            self._is_stopped = self._is_stopped or carried < self._floor
            end = end if self._is_stopped else told.span.end
        self._waiting.clear()
        return self._until(end)

    def _until(self, end: int) -> str:
        held = "".join(self._held)
        shown = held[: end - self._at]
        self._held, self._at = [held[len(shown) :]], end
        return shown
