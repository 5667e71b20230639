"""Equal questions at the same time are answered once."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass

from chassis import deadlines
from chassis.deadlines import Deadline
from services.generate.call import Call
from services.generate.result import Result


@dataclass(slots=True)
class _Flight:
    """The work for the call that came first, and how many wait for it now."""

    call: Call
    work: asyncio.Task[Result]
    waiting: int = 0


class Flights:
    """No answer takes longer than `limit` seconds; each of those who wait has a time of its own."""

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._flights: dict[Hashable, _Flight] = {}

    async def join(
        self, key: Hashable, call: Call, make: Callable[[Call], Awaitable[Result]]
    ) -> Result:
        """What `make` gives for the first call with that key; also what it raises.

        The work goes on while anybody waits for it, whoever came first, and ends with the last.
        """
        flight = self._flights.get(key)
        if flight is None:
            flight = self._begin(key, call, make)
        else:
            flight.call.ledger.lasts_until(call.ledger.deadline)
            call.tell("cache:join")
        flight.waiting += 1
        try:
            return await asyncio.shield(flight.work)
        finally:
            flight.waiting -= 1
            if not flight.waiting:
                await self._end(key, flight)

    def _begin(
        self, key: Hashable, call: Call, make: Callable[[Call], Awaitable[Result]]
    ) -> _Flight:
        async def work() -> Result:
            deadlines.enter(Deadline.after(self._limit))
            return await make(call)

        flight = self._flights[key] = _Flight(call, asyncio.create_task(work()))
        return flight

    async def _end(self, key: Hashable, flight: _Flight) -> None:
        # Before anything is awaited: nobody may join what is ending.
        if self._flights.get(key) is flight:
            del self._flights[key]
        flight.work.cancel()
        await asyncio.wait((flight.work,))
