"""Counting in pieces against counting the whole message for every candidate, in one run.

Prints JSON: seconds of both, their ratio, and that both came to the same message.
"""

import argparse
import json
import os
import random
import time
from collections.abc import Callable
from typing import Any

from bench.parts.files import WORDS
from bench.parts.rows import Reach, row
from corpus.tokens import vocabulary
from services.assemble import message
from services.assemble.admit import Count
from services.assemble.assembly import Injection, Selection, Task, assemble
from services.assemble.budget import Budget
from services.assemble.candidate import Block, Candidate, Position, in_order
from services.assemble.instructions import load

CANDIDATES, FEW = 2_000, 20
CONTEXT = 32_768  # tokens
REPEATED = 20
BESIDE = "recounting the whole message"
SOON, FASTER = Reach(3, "figure"), Reach(50, least=True)
DOCUMENTS = 100
BLOCKS_EACH, STEP = 3, 2
WORDS_EACH = 25
Report = dict[str, Any]

QUESTION = "What has to be checked before a replica is promoted?"


def measure(candidates: int = CANDIDATES, context: int = CONTEXT) -> Report:
    load = round(os.getloadavg()[0], 1)
    encoding = vocabulary("o200k_base")

    def count(text: str) -> int:
        return len(encoding.encode_ordinary(text))

    few, task = _task(FEW, context), _task(candidates, context)
    ours = min(_seconds(lambda: assemble(few, count)) for _ in range(REPEATED))
    begin = time.perf_counter()
    assembly = assemble(task, count)
    seconds = time.perf_counter() - begin
    begin = time.perf_counter()
    recounted = _recounted(task, count)
    theirs = time.perf_counter() - begin
    few_theirs = min(_seconds(lambda: _recounted(few, count)) for _ in range(REPEATED))
    return {
        "load": load,
        "candidates": candidates,
        "context": context,
        "sources": len(assembly.sources),
        "tokens": assembly.tokens,
        "few_seconds": round(ours, 5),
        "seconds": round(seconds, 4),
        "recounting_seconds": round(theirs, 3),
        "ratio": round(theirs / seconds, 1),
        "same_message": assembly.user == recounted,
        "rows": [
            row(f"{FEW} candidates", 1e3 * ours, "ms", SOON, beside=BESIDE, than=1e3 * few_theirs),
            row(
                f"{candidates} candidates, times as fast",
                theirs / seconds,
                "",
                FASTER,
                beside=BESIDE,
                ratio=theirs / seconds,
            ),
        ],
    }


def _seconds(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def _task(candidates: int, context: int) -> Task:
    return Task(
        question=QUESTION,
        candidates=_candidates(random.Random(1), candidates),  # noqa: S311 - the same in every run
        instructions=load()["en"],
        budget=Budget(context, 800, 256),
        selection=Selection.UNIQUE,
        injection=Injection.DROP,
        max_sources=candidates,
    )


def _candidates(chance: random.Random, count: int) -> tuple[Candidate, ...]:
    chunks = -(-count // DOCUMENTS)
    texts = {
        Position(f"runbook-{document}", "r1", "s1", ordinal, 0): _text(chance)
        for document in range(DOCUMENTS)
        for ordinal in range(chunks * STEP + BLOCKS_EACH)
    }
    places = list(texts)
    each = len(places) // DOCUMENTS
    return tuple(
        _candidate(index, [(at, texts[at]) for at in _window(places, each, index)], chance.random())
        for index in range(count)
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--candidates", type=int, default=CANDIDATES)
    parser.add_argument("--context", type=int, default=CONTEXT, help="context limit in tokens")
    parser.add_argument("--json", action="store_true", help="one line, for programs")
    given = parser.parse_args()
    found = measure(given.candidates, given.context)
    print(json.dumps(found, indent=None if given.json else 2))


if __name__ == "__main__":
    main()
