"""One pool's state, and its scripts under a clock of the test's own."""

import struct
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from redis import Redis

from capacity.pool import REQUEST, Limits
from capacity.store import script

NAME = "test"
STATE, LEASES, WAITING = KEYS = tuple(
    f"sluice:{{{NAME}}}:{part}" for part in ("pool", "running", "waiting")
)
SECOND = 1_000_000
LEASE = 10 * SECOND
DELAY = 3 * SECOND
RAMP = 10 * SECOND
NEVER_BEGAN = -2
# What Redis says of the time is a fact like any other to the rest of the script.
CLOCK, TEST_CLOCK = "local clock = redis.call('TIME')", "local clock = {0, table.remove(ARGV)}"


Call = tuple[Any, ...]


class Level(NamedTuple):
    time: int
    places: int
    batch_places: int
    waiting: int
    opens: int
    cool_end: int
    ramp_end: int
    requests: int
    tokens: int
    batch_requests: int
    batch_tokens: int


def fill(client: Redis) -> None:
    """The pool as it is after a long time without any attempt."""
    client.delete(*KEYS)
    client.set(STATE, struct.pack("<11d", 1, *[0] * 10))


def empty(client: Redis, now: int) -> None:
    """An open pool with nothing left in it at this microsecond."""
    client.delete(*KEYS)
    client.set(STATE, struct.pack("<11d", now, *[0] * 10))


def level(client: Redis) -> Level:
    packed = client.get(STATE)
    assert isinstance(packed, bytes)
    return Level(*(int(number) for number in struct.unpack("<11d", packed)))


def member(name: str, tokens: int, *, batch: bool = False) -> bytes:
    """What stands for a reservation in the pool's sets."""
    return struct.pack("<Bd", batch, tokens) + name.encode()


def names(client: Redis, key: str = LEASES) -> list[str]:
    return [one[9:].decode() for one in dates(client, key)]


def dates(client: Redis, key: str) -> dict[bytes, float]:
    found: Any = client.zrange(key, 0, -1, withscores=True)
    return dict(found)


def dump(client: Redis) -> tuple[object, ...]:
    return tuple(client.dump(key) for key in KEYS)


@dataclass
class Scripts:
    """Amounts are in units, times in microseconds.

    A reservation is known by its name, and is of the class and size of its last asking.
    """

    client: Redis
    limits: Limits
    now: int = 1_700_000_000 * SECOND
    digests: dict[str, str] = field(default_factory=dict)
    members: dict[str, bytes] = field(default_factory=dict)
    packed: bytes = field(init=False)

    def __post_init__(self) -> None:
        self.packed = struct.pack("<14d", LEASE, DELAY, RAMP, REQUEST, *self.limits.numbers())
        for name in ("reserve", "begin", "settle", "renew", "cool_down", "snapshot"):
            text = script(name).text
            assert text.count(CLOCK) == 1
            self.digests[name] = self.client.script_load(text.replace(CLOCK, TEST_CLOCK))

    def reserve(
        self, name: str, tokens: int, *, batch: bool = False, max_wait: int = 0
    ) -> list[int]:
        """Code and microseconds; both are 0 when it is granted."""
        self.members[name] = member(name, tokens, batch=batch)
        return self._run("reserve", self.members[name], max_wait) or [0, 0]

    def begin(self, name: str) -> list[int]:
        return self._run("begin", self._member(name)) or [0, 0]

    def settle(self, name: str, used: int = -1) -> bool:
        return bool(self._run("settle", self._member(name), used))

    def renew(self, *attempts: tuple[str, bool, int]) -> int:
        for name, batch, tokens in attempts:
            self.members[name] = member(name, tokens, batch=batch)
        added: int = self._run("renew", *(self.members[name] for name, _, _ in attempts))
        return added

    def cool_down(self, microseconds: int) -> int:
        left: int = self._run("cool_down", microseconds)
        return left

    def snapshot(self) -> list[int]:
        reply: list[int] = self._run("snapshot")
        return reply

    def tokens(self) -> int:
        """Units that are left now; below zero for a debt."""
        return self.snapshot()[8]

    def call(self, name: str, *arguments: bytes | int) -> Call:
        """What EVALSHA is given for one call."""
        return self.digests[name], 3, *KEYS, self.packed, *arguments, self.now

    def _member(self, name: str) -> bytes:
        return self.members.get(name, member(name, 1))

    def _run(self, name: str, *arguments: bytes | int) -> Any:  # noqa: ANN401 - each script has a reply of its own
        return self.client.evalsha(*self.call(name, *arguments))
