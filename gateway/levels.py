"""What operators see: the provider's pools, and the room and refusals of this gateway."""

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass

from capacity import Mode, SharedBucket, Snapshot
from gateway.admission import Room
from gateway.places import SharedPlaces

LOOK_EVERY = 5.0  # seconds


@dataclass(frozen=True, slots=True)
class RoomLevels:
    """`shared_in_flight` counts all gateways' questions; None while Redis cannot say."""

    in_flight: int
    max_in_flight: int
    waiting: int
    shared_in_flight: int | None
    shared_max_in_flight: int
    mode: Mode
    refusals: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Levels:
    """`refusals` is what the admission counts."""

    pools: Mapping[str, SharedBucket]
    room: Room
    places: SharedPlaces
    refusals: Mapping[str, int]

    async def of_pools(self) -> dict[str, Snapshot]:
        """Each pool now; without Redis, what this process's own share of it would be."""
        found = await asyncio.gather(*(pool.snapshot() for pool in self.pools.values()))
        return dict(zip(self.pools, found, strict=True))

    async def of_room(self) -> RoomLevels:
        shared = await self.places.taken()
        return RoomLevels(
            in_flight=self.room.taken,
            max_in_flight=self.room.seats,
            waiting=self.room.waiting,
            shared_in_flight=shared,
            shared_max_in_flight=self.places.number,
            mode=Mode.LOCAL_SHARE if shared is None else Mode.SHARED,
            refusals=dict(self.refusals),
        )

    async def watch(self, stop: asyncio.Event) -> None:
        """Look at the pools until `stop`, for the metrics that a look tells."""
        while not stop.is_set():
            await self.of_pools()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), LOOK_EVERY)

    async def close(self) -> None:
        for pool in self.pools.values():
            await pool.close()
