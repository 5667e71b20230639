"""Which candidates become sources: best first, each position once, never over the allowance."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from services.assemble import message
from services.assemble.candidate import Block, Candidate

Count = Callable[[str], int]


class Decision(Enum):
    ADMITTED = "at least one block is in a source"
    DUPLICATE = "all blocks are in sources already"
    OVER_BUDGET = "what it would add does not fit"
    SUSPECTED_INJECTION = "it resembles instructions"
    BELOW_RANK = "the number of sources was reached before it"


@dataclass(frozen=True, slots=True)
class Verdict:
    """`tokens` are what an admitted candidate added, or one over budget would have added."""

    decision: Decision
    tokens: int = 0


@dataclass(slots=True, eq=False)
class Run:
    """The blocks of one source while it grows; `tokens` are those of its body."""

    lead: Candidate
    members: list[Candidate]
    blocks: list[Block]
    tokens: int


@dataclass(frozen=True, slots=True)
class Plan:
    """What a candidate would add, the sources it would join, and the tokens of the joint body."""

    candidate: Candidate
    blocks: Sequence[Block]
    joined: Sequence[Run]
    tokens: int


class Layout(Protocol):
    """How blocks make sources. Planning changes nothing."""

    def fresh(self, candidate: Candidate) -> list[Block]:
        """The candidate's blocks that no source holds."""
        ...

    def plan(self, candidate: Candidate, fresh: Sequence[Block]) -> Plan: ...

    def commit(self, plan: Plan) -> None: ...


@dataclass(frozen=True, slots=True)
class Limits:
    """Most tokens of the messages, and most sources in them."""

    tokens: int
    sources: int


class Admission:
    """Tries candidates in order and keeps the exact count of the messages they make.

    `base` is what the messages count without evidence.
    """

    def __init__(self, layout: Layout, limits: Limits, base: int, count: Count) -> None:
        self.tokens = base
        self._layout = layout
        self._limits = limits
        self._count = count
        self._frames = [0]
        self._sources = 0

    def consider(self, candidate: Candidate) -> Verdict:
        """Decide on the next candidate. One that is left out marks nothing as seen."""
        fresh = self._layout.fresh(candidate)
        if not fresh:
            return Verdict(Decision.DUPLICATE)
        plan = self._layout.plan(candidate, fresh)
        sources = self._sources + 1 - len(plan.joined)
        if sources > self._limits.sources:
            return Verdict(Decision.BELOW_RANK)
        added = plan.tokens - sum(run.tokens for run in plan.joined)
        added += self._frame(sources) - self._frame(self._sources)
        if self.tokens + added > self._limits.tokens:
            return Verdict(Decision.OVER_BUDGET, max(added, 0))
        self._layout.commit(plan)
        self._sources = sources
        self.tokens += added
        return Verdict(Decision.ADMITTED, max(added, 0))

    def _frame(self, sources: int) -> int:
        """Labels and what stands between that many sources."""
        while len(self._frames) <= sources:
            number = len(self._frames)
            pieces = [message.OPENING, message.label_piece(number)]
            apart = [message.SEPARATOR] if number > 1 else []
            self._frames.append(self._frames[-1] + sum(map(self._count, [*pieces, *apart])))
        return self._frames[sources]
