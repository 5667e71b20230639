"""A provider of answers, a process of its own: it quotes what it is shown and writes down who came.

It admits everybody. Each line of its log is `begin` or `end`, microseconds, the call's number and
its tokens, counted with the vocabulary that the suite counts with; a call ends when its answer is
out or its caller is gone.
"""

import argparse
import asyncio
import contextlib
import itertools
import json
import random
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

from corpus.tokens import vocabulary
from tests.scripted_provider.replies import DONE, STREAM, chunk, usage
from tests.scripted_provider.server import Exchange, ScriptedProvider

TOKENIZER = "o200k_base"
ASKED = re.compile(r"the ([a-z]+) valve")
SHORTEST, LONGEST = 0.1, 0.9  # seconds of an answer
PIECES = 4


class Provider:
    def __init__(self, log: TextIO, draw: random.Random) -> None:
        self._log = log
        self._draw = draw
        self._numbers = itertools.count()
        self._vocabulary = vocabulary(TOKENIZER)

    async def __call__(self, exchange: Exchange) -> None:
        contents = [message["content"] for message in exchange.body["messages"]]
        answer = json.dumps(quoted(contents))
        read, written = sum(map(self._count, contents)), self._count(answer)
        number = next(self._numbers)
        self._tell("begin", number, read + written)
        try:
            exchange.head(200, STREAM)
            await self._stream(exchange, answer)
            counts = {"prompt_tokens": read, "completion_tokens": written}
            await exchange.write(usage({**counts, "total_tokens": read + written}) + DONE)
        finally:
            self._tell("end", number, read + written)

    async def _stream(self, exchange: Exchange, answer: str) -> None:
        pause = self._draw.uniform(SHORTEST, LONGEST) / PIECES
        size = -(-len(answer) // PIECES)
        for start in range(0, len(answer), size):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(exchange.left.wait(), pause)
                raise ConnectionResetError
            await exchange.write(chunk(answer[start : start + size]))
        await exchange.write(chunk(finish="stop"))

    def _count(self, text: str) -> int:
        return len(self._vocabulary.encode(text, disallowed_special=()))

    def _tell(self, kind: str, number: int, tokens: int) -> None:
        print(kind, time.monotonic_ns() // 1_000, number, tokens, file=self._log, flush=True)


def quoted(contents: Sequence[str]) -> dict[str, Any]:
    """What the first two sources about the valve say of it; insufficient where none does."""
    told = next(json.loads(content) for content in contents if content.startswith('{"question"'))
    asked = ASKED.search(told["question"])
    lines = {source["label"]: source["text"].strip() for source in told["evidence"]}
    fitting = {
        label: line
        for label, line in lines.items()
        if asked and line.startswith(f"The {asked[1]} valve")
    }
    chosen = list(fitting.items())[:2]
    if not chosen:
        return {"status": "insufficient", "answer": "No source speaks of it.", "source_ids": []}
    text = " ".join(f"{line.removesuffix('.')} [{label}]." for label, line in chosen)
    return {"status": "answered", "answer": text, "source_ids": [label for label, _ in chosen]}


async def serve(port: int, log: TextIO, seed: int) -> None:
    async with ScriptedProvider(Provider(log, random.Random(seed)), port):
        await asyncio.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--seed", type=int, required=True, help="of the lengths of answers")
    given = parser.parse_args()
    with given.log.open("w") as log:
        asyncio.run(serve(given.port, log, given.seed))


if __name__ == "__main__":
    main()
