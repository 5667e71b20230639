"""One pool's state, and its scripts under a clock of the test's own."""

import struct
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from redis import Redis

from capacity.pool import REQUEST, Limits
from capacity.store import Script

NAME = "test"
STATE, LEASES = KEYS = f"sluice:{{{NAME}}}:state", f"sluice:{{{NAME}}}:leases"
SECOND = 1_000_000
LEASE = 10 * SECOND
DELAY = 3 * SECOND
# What Redis says of the time is a fact like any other to the rest of the script.
CLOCK, TEST_CLOCK = "local clock = redis.call('TIME')", "local clock = {0, ARGV[#ARGV]}"


Call = tuple[Any, ...]


class Level(NamedTuple):
    time: int
    places: int
    batch_places: int
    requests: int
    tokens: int
    batch_requests: int
    batch_tokens: int


def fill(client: Redis) -> None:
    """The pool as it is after a long time without any attempt."""
    client.delete(*KEYS)
    client.hset(STATE, mapping={"pool": struct.pack("<7d", 1, 0, 0, 0, 0, 0, 0), "opens": 0})


def level(client: Redis) -> Level:
    packed = client.hget(STATE, "pool")
    assert isinstance(packed, bytes)
    return Level(*(int(number) for number in struct.unpack("<7d", packed)))


def dump(client: Redis) -> tuple[object, object]:
    return client.dump(STATE), client.dump(LEASES)


@dataclass
class Scripts:
    """Amounts are in units, times in microseconds."""

    client: Redis
    limits: Limits
    now: int = 1_700_000_000 * SECOND
    digests: dict[str, str] = field(default_factory=dict)
    packed: bytes = field(init=False)

    def __post_init__(self) -> None:
        self.packed = struct.pack("<13d", LEASE, DELAY, REQUEST, *self.limits.numbers())
        for name in ("reserve", "settle", "renew"):
            text = Script.load(name).text
            assert text.count(CLOCK) == 1
            self.digests[name] = self.client.script_load(text.replace(CLOCK, TEST_CLOCK))

    def reserve(self, name: str, tokens: int, *, batch: bool = False) -> list[int]:
        return self._run("reserve", name, int(batch), tokens)

    def settle(self, name: str, used: int = -1, *, begun: bool = True) -> bool:
        return self._run("settle", name, int(begun), used) == [1]

    def renew(self, *attempts: tuple[str, bool, int]) -> int:
        words = [word for name, batch, tokens in attempts for word in (name, int(batch), tokens)]
        (added,) = self._run("renew", *words)
        return added

    def call(self, name: str, *arguments: str | int) -> Call:
        """What EVALSHA is given for one call."""
        return self.digests[name], 2, STATE, LEASES, self.packed, *arguments, self.now

    def _run(self, name: str, *arguments: str | int) -> list[int]:
        reply: list[int] = self.client.evalsha(*self.call(name, *arguments))
        return reply
