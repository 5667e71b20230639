"""From candidates to the exact messages: one pure function."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from corpus.suspicion import suspected_injection
from services.assemble import message
from services.assemble.admit import Admission, Count, Decision, Limits, Run, Verdict
from services.assemble.budget import Budget, require_room
from services.assemble.candidate import Block, Candidate, in_order
from services.assemble.contiguous import Contiguous
from services.assemble.instructions import Instructions
from services.assemble.remembered import remembered
from services.assemble.separate import Separate

SUSPECTED = Verdict(Decision.SUSPECTED_INJECTION)

_suspected = remembered(suspected_injection)


class Selection(Enum):
    """How admitted blocks are laid out."""

    UNIQUE = "only blocks that no earlier source holds"
    CONTIGUOUS = "unique, and neighbouring blocks of a section become one source"
    WHOLE = "chunks as retrieved"


class Injection(Enum):
    """What becomes of candidates that resemble instructions."""

    DROP = "they are left out"
    FLAG = "they are admitted and marked"


@dataclass(frozen=True, slots=True)
class Task:
    """Everything that decides the result."""

    question: str
    candidates: tuple[Candidate, ...]
    instructions: Instructions
    budget: Budget
    selection: Selection
    injection: Injection
    max_sources: int


@dataclass(frozen=True, slots=True)
class Source:
    """What is put before the model under one label; `text` is what it sees."""

    label: str
    lead: Candidate
    members: tuple[Candidate, ...]
    blocks: tuple[Block, ...]
    text: str
    suspected: bool


@dataclass(frozen=True, slots=True)
class Outcome:
    """The decision on one candidate; `label` is empty unless it was admitted."""

    candidate: Candidate
    verdict: Verdict
    label: str


@dataclass(frozen=True, slots=True)
class Assembly:
    """`outcomes` are in the request's order. Without sources there are no messages."""

    system: str
    user: str
    sources: tuple[Source, ...]
    outcomes: tuple[Outcome, ...]
    tokens: int

    def tally(self) -> dict[str, int]:
        """How many candidates met each decision."""
        found = Counter(outcome.verdict.decision for outcome in self.outcomes)
        return {decision.name.lower(): found[decision] for decision in Decision}


def assemble(task: Task, count: Count) -> Assembly:
    """Build the messages. `count` is the generation model's tokenizer.

    Raises InvalidInput when instructions and question alone do not fit the budget.
    """
    base = sum(map(count, [task.instructions.text, message.head(task.question), message.TAIL]))
    require_room(task.budget, base)
    layout = _layout(task, count)
    limits = Limits(task.budget.allowance, task.max_sources)
    admission = Admission(layout, limits, base, count)
    suspects = {c.index for c in task.candidates if c.marked or _suspected(c.readable)}
    dropped = suspects if task.injection is Injection.DROP else set()
    verdicts = {
        c.index: SUSPECTED if c.index in dropped else admission.consider(c)
        for c in in_order(task.candidates)
    }
    sources = tuple(_source(n, run, suspects) for n, run in enumerate(layout.runs, start=1))
    return _assembly(task, sources, verdicts, admission.tokens)


def _layout(task: Task, count: Count) -> Separate | Contiguous:
    if task.selection is Selection.CONTIGUOUS:
        return Contiguous(task.candidates, count)
    return Separate(count, whole=task.selection is Selection.WHOLE)


def _source(number: int, run: Run, suspects: set[int]) -> Source:
    blocks = tuple(sorted(run.blocks, key=lambda block: block.at))
    return Source(
        label=message.label(number),
        lead=run.lead,
        members=tuple(in_order(run.members)),
        blocks=blocks,
        text=message.BLOCK_BREAK.join(block.text for block in blocks),
        suspected=any(member.index in suspects for member in run.members),
    )


def _assembly(
    task: Task, sources: Sequence[Source], verdicts: dict[int, Verdict], tokens: int
) -> Assembly:
    labels = {member.index: source.label for source in sources for member in source.members}
    outcomes = (Outcome(c, verdicts[c.index], labels.get(c.index, "")) for c in task.candidates)
    rendered = [
        message.source(n, message.body(source.lead, source.text))
        for n, source in enumerate(sources, start=1)
    ]
    return Assembly(
        system=task.instructions.text if sources else "",
        user=message.user_message(task.question, rendered) if sources else "",
        sources=tuple(sources),
        outcomes=tuple(outcomes),
        tokens=tokens if sources else 0,
    )
