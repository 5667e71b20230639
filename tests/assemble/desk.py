"""Candidates written shortly, the real tokenizer, and whole assemblies from them."""

import json
from collections.abc import Iterable
from dataclasses import replace

from corpus.tokens import vocabulary
from services.assemble.admit import Decision
from services.assemble.assembly import Assembly, Injection, Selection, Task, assemble
from services.assemble.budget import Budget
from services.assemble.candidate import Block, Candidate, Position
from services.assemble.instructions import Instructions

RULES = Instructions("test-1", "Answer from the evidence. Cite it.")
TASK = Task(
    question="What now?",
    candidates=(),
    instructions=RULES,
    budget=Budget(100_000, 0, 0),
    selection=Selection.UNIQUE,
    injection=Injection.DROP,
    max_sources=1_000,
)
WINDOW = Candidate(
    index=0,
    point="p",
    document="runbook",
    revision="r1",
    chunking="c1",
    chunk=0,
    title="Disk full",
    version="",
    headings=("Steps",),
    blocks=(),
    score=0.5,
    marked=False,
)


def count(text: str) -> int:
    """Tokens of the complete text, as the generation model counts them."""
    return len(vocabulary("o200k_base").encode(text, disallowed_special=()))


def block(ordinal: int, text: str, *, piece: int = 0, section: str = "s1", start: int = 0) -> Block:
    at = Position("runbook", "r1", section, ordinal, piece)
    return Block(at, text, start, start + len(text))


def window(score: float, *blocks: Block, **known: object) -> Candidate:
    """A candidate with these blocks; numbers are given by `run`."""
    return replace(WINDOW, score=score, blocks=blocks, **known)  # type: ignore[arg-type] # by name


def run(candidates: Iterable[Candidate], **known: object) -> Assembly:
    """Assemble, with an ample budget unless told otherwise; `allowance` sets a budget's result."""
    if "allowance" in known:
        known["budget"] = Budget(int(str(known.pop("allowance"))), 0, 0)
    numbered = tuple(replace(c, index=n, point=f"p{n}") for n, c in enumerate(candidates))
    task = replace(TASK, candidates=numbered, **known)  # type: ignore[arg-type] # by name
    return assemble(task, count)


def decisions(assembly: Assembly) -> list[Decision]:
    return [outcome.verdict.decision for outcome in assembly.outcomes]


def evidence(assembly: Assembly) -> list[dict[str, str]]:
    """The sources as the model reads them."""
    found: list[dict[str, str]] = json.loads(assembly.user)["evidence"]
    return found


def texts(assembly: Assembly) -> list[str]:
    return [source["text"] for source in evidence(assembly)]


def full_count(assembly: Assembly) -> int:
    """Tokens of the final texts, counted whole."""
    return count(assembly.system) + count(assembly.user)
