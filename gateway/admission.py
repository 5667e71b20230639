"""Who is let in: the caller's allowance, then room here and across all gateways, then the flow."""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Generic

from chassis import deadlines, identity
from chassis.errors import Exhausted
from gateway import measures
from gateway.allowance import Allowance
from gateway.answer import Answer, P, S
from gateway.flow import Flow
from gateway.outcome import Reason
from gateway.places import Places
from gateway.question import Question
from gateway.quota import Standing
from gateway.telling import Tell

# How often the first in line looks whether another gateway has made room.
LOOK_EVERY = 0.05

Stand = Callable[[tuple[Standing, ...]], None]


class NoRoom(Exhausted):
    """As many questions are being answered as there is room for, here or in all gateways."""

    default_reason = "NO_ROOM"


@dataclass(frozen=True, slots=True)
class Waiting:
    """How long, in seconds, and how many questions may wait for room; nobody by default."""

    seconds: float = 0
    length: int = 0


class Room:
    """Seats of this process, shared by every way in, each with a place among all gateways."""

    def __init__(self, seats: int, places: Places, waiting: Waiting = Waiting()) -> None:
        self.seats = seats
        self.taken = 0
        self._places = places
        self._limits = waiting
        self._waiting: deque[asyncio.Event] = deque()
        measures.idle()

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def seat(self) -> "Seat":
        """A seat until a block ends, however it ends.

        The block begins with NoRoom when none is free, nor becomes free while the question may
        wait: in order of arrival, and never beyond its deadline.
        """
        return Seat(self)

    async def take(self) -> str:
        """The place of a seat that is to be given back. Raises NoRoom."""
        place = (None if self._waiting else await self._sit()) or await self._queue()
        measures.seated()
        return place

    async def give(self, place: str) -> None:
        try:
            await self._places.give(place)
        finally:
            self._free()
            measures.left()

    async def _sit(self) -> str | None:
        if self.taken >= self.seats:
            return None
        self.taken += 1
        place = None
        try:
            place = await self._places.take()
        finally:
            if place is None:
                self.taken -= 1
        return place

    async def _queue(self) -> str:
        if len(self._waiting) >= self._limits.length or not self._limits.seconds:
            raise NoRoom("too many questions at once; try again soon")
        turn = asyncio.Event()
        self._waiting.append(turn)
        measures.queued()
        try:
            async with asyncio.timeout(deadlines.within(self._limits.seconds).remaining()):
                return await self._first(turn)
        except TimeoutError:
            raise NoRoom("no room became free in time; try again soon") from None
        finally:
            self._waiting.remove(turn)
            measures.unqueued()
            self._call_first()

    async def _first(self, turn: asyncio.Event) -> str:
        while True:
            turn.clear()
            if self._waiting[0] is turn:
                place = await self._sit()
                if place:
                    return place
            try:
                async with asyncio.timeout(LOOK_EVERY if self._waiting[0] is turn else None):
                    await turn.wait()
            except TimeoutError:
                continue

    def _free(self) -> None:
        self.taken -= 1
        self._call_first()

    def _call_first(self) -> None:
        if self._waiting:
            self._waiting[0].set()


class Seat:
    """One of a room's seats while a block runs."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._place = ""

    async def __aenter__(self) -> None:
        self._place = await self._room.take()

    async def __aexit__(self, *_: object) -> None:
        await self._room.give(self._place)


class Counting:
    """Counts by reason what is wanting in its blocks, of which there may be many at once."""

    def __init__(self, refusals: Counter[str]) -> None:
        self._refusals = refusals

    def count(self, reason: str) -> None:
        self._refusals[reason] += 1
        measures.refused(reason)

    def __enter__(self) -> None: ...

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, Exhausted):
            self.count(error.reason)


class Admission(Generic[P, S]):
    """The one way in, whichever face a question comes through.

    `refusals` counts by reason what was refused here, and answers that capacity was missing for.
    """

    def __init__(self, allowance: Allowance, room: Room, flow: Flow[P, S]) -> None:
        self.refusals: Counter[str] = Counter()
        self._counting = Counting(self.refusals)
        self._allowance = allowance
        self._room = room
        self._flow = flow

    async def ask(
        self, question: Question, stand: Stand = lambda _: None, tell: Tell[S] | None = None
    ) -> Answer[S]:
        """The answer to the current caller's question.

        `tell` hears how the answer comes about; the seat is held until it has heard the answer.
        Raises what `admitted` and the flow raise.
        """
        with self._counting:
            await self._charge(stand)
            async with self._room.seat():
                answer = await self._flow.ask(question, tell)
        if answer.written.outcome.reason is Reason.CAPACITY:
            self._counting.count(Reason.CAPACITY)
        return answer

    @asynccontextmanager
    async def admitted(self, stand: Stand) -> AsyncIterator[None]:
        """A seat until the block ends; `stand` hears where the current caller stands.

        Raises AllowanceSpent and NoRoom. A want of capacity that the block raises counts as well.
        """
        with self._counting:
            await self._charge(stand)
            async with self._room.seat():
                yield

    @asynccontextmanager
    async def charged(self, stand: Stand) -> AsyncIterator[None]:
        """The same without a seat, for what is not answered now."""
        with self._counting:
            await self._charge(stand)
            yield

    async def _charge(self, stand: Stand) -> None:
        verdict = await self._allowance.charge(identity.current())
        stand(verdict.standings)
        verdict.check()
