"""Answers from the cache where they are fresh, made and kept where they are not."""

from dataclasses import dataclass
from functools import partial

from services.generate.cache import AnswerCache, Stored
from services.generate.call import Call, Step
from services.generate.candidate import Candidate
from services.generate.flights import Flights
from services.generate.key import key
from services.generate.result import Result


@dataclass(frozen=True, slots=True)
class Keys:
    """`validation` names the rules that answers are judged by now."""

    secret: bytes
    validation: str

    def of(self, call: Call, candidate: Candidate) -> str:
        return key(self.secret, call.task, candidate, self.validation)


@dataclass(frozen=True, slots=True)
class Cached:
    """An entry is fresh for `fresh` seconds.

    Evidence is inside the key, and whoever asks has just been found to have a right to it, so that
    an entry can neither leak nor be out of date.
    """

    inner: Step
    cache: AnswerCache
    keys: Keys
    flights: Flights
    fresh: float

    async def answer(self, call: Call) -> Result:
        """Equal questions at once are answered once; what is shown while it comes is nobody else's.

        Raises what is raised inside. A cache that is lost is one without entries.
        """
        key = self.keys.of(call, call.route.candidate)
        if call.audience is not None:
            return await self._found_or_made(key, call)
        # Who waits for an answer does not wait for batch work's turn.
        wanted = key, call.task.workload
        return await self.flights.join(wanted, call, partial(self._found_or_made, key))

    async def _found_or_made(self, key: str, call: Call) -> Result:
        first = call.route.candidate
        stored = await self.cache.find(key)
        if stored is not None and stored.age <= self.fresh:
            call.tell("cache:hit")
            return stored.result
        call.tell("cache:miss")
        result = await self.inner.answer(call)
        # Under the key of whoever served, which need not be the first that was asked.
        served = call.route.candidate
        if await self.cache.keep(key if served is first else self.keys.of(call, served), result):
            call.tell("cache:store")
        return result


@dataclass(frozen=True, slots=True)
class Earlier:
    """Answers that are not fresh, for the time when no model can be asked."""

    cache: AnswerCache
    keys: Keys
    most: float

    async def find(self, call: Call) -> Stored | None:
        """An answer to the same question and evidence of at most `most` seconds ago."""
        for candidate in call.route.candidates:
            stored = await self.cache.find(self.keys.of(call, candidate))
            if stored is not None and stored.age <= self.most:
                return stored
        return None
