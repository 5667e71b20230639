"""Earlier answers, in Redis. It never fails a question and never holds it up: lost is not found."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import structlog
from pydantic import BaseModel, ConfigDict, ValidationError
from redis.asyncio import Redis
from redis.exceptions import RedisError

from capacity.evaluation import Evaluation, Script, bulk
from capacity.store import connect
from services.generate.result import Citation, Provenance, Result, Spent
from services.generate.verdict import Acceptance, Generated

MILLISECONDS = 1_000
PREFIX = "sluice:answer:"
# While Redis is lost one question in so many seconds tries it; the others do not wait for it.
RETRY_EVERY = 0.5

# The value and what is left of its time, in one step.
FIND = Script.of("return {redis.call('GET', KEYS[1]), redis.call('PTTL', KEYS[1])}")
KEEP = Script.of("return redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])")

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Stored:
    """An answer that was validated `age` seconds ago, with how it came about then."""

    result: Result
    acceptance: Acceptance
    age: float


class _Entry(BaseModel):
    """Labels and spans, but nothing of whose sources they are."""

    model_config = ConfigDict(extra="forbid")

    text: str
    citations: list[tuple[str, int, int, float]]
    acceptance: str
    candidate: str
    model: str
    is_structured: bool
    is_repaired: bool
    kept: int  # milliseconds that it was to be kept; with what is left of them, its age


class AnswerCache:
    """Keeps entries for `kept` seconds; no step takes longer than `limit` seconds.

    Age is told by the server's clock alone. The client must not repeat commands by itself.
    """

    def __init__(
        self,
        redis: Redis,
        *,
        kept: float,
        limit: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._redis = redis
        self._evaluation = Evaluation(redis, limit)
        self._kept = round(kept * MILLISECONDS)
        self._clock = clock
        self._retry_at: float | None = None

    @classmethod
    def connect(cls, url: str, *, kept: float, limit: float) -> Self:
        """With a client of its own. Nothing is sent before the first question."""
        return cls(connect(url, limit), kept=kept, limit=limit)

    async def find(self, key: str) -> Stored | None:
        found = await self._step(FIND, key)
        if found is None:
            return None
        value, left = found
        if value is None:
            return None
        try:
            return _stored(_Entry.model_validate_json(value), left)
        except (ValidationError, KeyError):
            log.warning("cached_answer_unreadable")
            return None

    async def keep(self, key: str, result: Result) -> bool:
        """Whether it was stored. Only a generated answer can be."""
        if not isinstance(result.verdict, Generated):
            return False
        entry = _entry(result, result.verdict.acceptance, self._kept).model_dump_json()
        return await self._step(KEEP, key, entry.encode(), b"%d" % self._kept) is not None

    async def close(self) -> None:
        self._evaluation.close()
        await self._redis.aclose()

    async def _step(self, script: Script, key: str, *arguments: bytes) -> Any:  # noqa: ANN401 - what the script replies
        """None where Redis did not answer in time."""
        if self._retry_at is not None and self._clock() < self._retry_at:
            return None
        if self._retry_at is not None:
            self._retry_at = self._clock() + RETRY_EVERY
        try:
            told = b"".join(map(bulk, (b"1", f"{PREFIX}{key}".encode(), *arguments)))
            reply = await self._evaluation.run(script, 2 + len(arguments), told)
        except (RedisError, OSError, TimeoutError) as error:
            self._lose(error)
            return None
        self._find()
        return reply

    def _lose(self, error: Exception) -> None:
        if self._retry_at is None:
            log.warning("answer_cache_lost", error=type(error).__name__)
        self._retry_at = self._clock() + RETRY_EVERY

    def _find(self) -> None:
        if self._retry_at is not None:
            log.warning("answer_cache_restored")
        self._retry_at = None


def _entry(result: Result, acceptance: Acceptance, kept: int) -> _Entry:
    return _Entry(
        text=result.text,
        citations=[(c.label, c.start, c.end, c.support) for c in result.citations],
        acceptance=acceptance.name,
        candidate=result.provenance.candidate,
        model=result.spent.model,
        is_structured=result.provenance.is_structured,
        is_repaired=result.provenance.is_repaired,
        kept=kept,
    )


def _stored(entry: _Entry, left: int) -> Stored:
    acceptance = Acceptance[entry.acceptance]
    age = max(0, entry.kept - left) / MILLISECONDS
    provenance = Provenance(
        candidate=entry.candidate,
        is_structured=entry.is_structured,
        is_repaired=entry.is_repaired,
        cached_age=age,
    )
    result = Result(
        Generated(acceptance),
        entry.text,
        tuple(Citation(*citation) for citation in entry.citations),
        Spent(model=entry.model),
        provenance,
    )
    return Stored(result, acceptance, age)
