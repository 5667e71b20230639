"""Counting in pieces against counting the whole message for every candidate, in one run.

Prints JSON: seconds of both, their ratio, and that both came to the same message.
"""

import argparse
import json
import random
import time

from corpus.tokens import vocabulary
from services.assemble import message
from services.assemble.admit import Count
from services.assemble.assembly import Injection, Selection, Task, assemble
from services.assemble.budget import Budget
from services.assemble.candidate import Block, Candidate, Position, in_order
from services.assemble.instructions import load

CANDIDATES = 2_000
DOCUMENTS = 100
BLOCKS_EACH, STEP = 3, 2
WORDS_EACH = 25
WORDS = [
    "the",
    "primary",
    "disk",
    "volume",
    "replica",
    "queue",
    "alert",
    "restart",
    "drain",
    "promote",
    "check",
    "before",
    "after",
    "until",
    "never",
    "always",
    "unless",
    "writer",
    "reader",
    "node",
    "host",
    "limit",
    "threshold",
    "minutes",
    "gigabytes",
    "owner",
    "page",
    "escalate",
    "runbook",
    "section",
    "table",
    "command",
    "output",
    "expected",
    "error",
    "timeout",
]
QUESTION = "What has to be checked before a replica is promoted?"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--context", type=int, default=32_768, help="context limit in tokens")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    context: int = options.context
    encoding = vocabulary("o200k_base")

    def count(text: str) -> int:
        return len(encoding.encode_ordinary(text))

    task = Task(
        question=QUESTION,
        candidates=_candidates(random.Random(1)),  # noqa: S311 - the same texts in every run
        instructions=load()["en"],
        budget=Budget(context, 800, 256),
        selection=Selection.UNIQUE,
        injection=Injection.DROP,
        max_sources=CANDIDATES,
    )
    begin = time.perf_counter()
    assembly = assemble(task, count)
    ours = time.perf_counter() - begin
    begin = time.perf_counter()
    recounted = _recounted(task, count)
    theirs = time.perf_counter() - begin
    report = {
        "candidates": CANDIDATES,
        "context": context,
        "sources": len(assembly.sources),
        "tokens": assembly.tokens,
        "seconds": round(ours, 4),
        "recounting_seconds": round(theirs, 3),
        "ratio": round(theirs / ours, 1),
        "same_message": assembly.user == recounted,
    }
    if options.json:
        print(json.dumps(report))
        return
    for name, value in report.items():
        print(f"{name:20} {value}")


def _candidates(chance: random.Random) -> tuple[Candidate, ...]:
    texts = {
        Position(f"runbook-{document}", "r1", "s1", ordinal, 0): _text(chance)
        for document in range(DOCUMENTS)
        for ordinal in range(CANDIDATES // DOCUMENTS * STEP + BLOCKS_EACH)
    }
    places = list(texts)
    each = len(places) // DOCUMENTS
    return tuple(
        _candidate(index, [(at, texts[at]) for at in _window(places, each, index)], chance.random())
        for index in range(CANDIDATES)
    )


def _window(places: list[Position], each: int, index: int) -> list[Position]:
    document, chunk = index % DOCUMENTS, index // DOCUMENTS
    begin = document * each + chunk * STEP
    return places[begin : begin + BLOCKS_EACH]


def _candidate(index: int, blocks: list[tuple[Position, str]], score: float) -> Candidate:
    return Candidate(
        index=index,
        point=f"point-{index}",
        document=blocks[0][0].document,
        revision="r1",
        chunking="c1",
        chunk=index // DOCUMENTS,
        title=f"Runbook {index % DOCUMENTS}",
        version="",
        headings=("Steps",),
        blocks=tuple(Block(at, text, 0, 0) for at, text in blocks),
        score=score,
        marked=False,
    )


def _text(chance: random.Random) -> str:
    return " ".join(chance.choices(WORDS, k=WORDS_EACH)).capitalize() + "."


def _recounted(task: Task, count: Count) -> str:
    held: set[Position] = set()
    rendered: list[str] = []
    room = task.budget.allowance - count(task.instructions.text)
    for each in in_order(task.candidates):
        fresh = [block for block in each.blocks if block.at not in held]
        if not fresh:
            continue
        source = message.source(len(rendered) + 1, message.body(each, _joined(fresh)))
        if count(message.user_message(task.question, [*rendered, source])) <= room:
            rendered.append(source)
            held.update(block.at for block in fresh)
    return message.user_message(task.question, rendered)


def _joined(blocks: list[Block]) -> str:
    return message.BLOCK_BREAK.join(block.text for block in blocks)


if __name__ == "__main__":
    main()
