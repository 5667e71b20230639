"""The caller's allowance: each request is charged to the subject and to the tenant, or to neither.

Shared by all gateways. While Redis is lost each process grants its own share, beginning full.
"""

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from capacity.pool import MICROSECONDS, REQUEST
from chassis.identity import REMEMBERED, Caller
from gateway.quota import Quota, Standing, Verdict
from gateway.store import Store, StoreLost

# How many buckets a process keeps before it looks for full ones, which need no keeping.
KEPT = 10_000


class Allowance(Protocol):
    async def charge(self, caller: Caller) -> Verdict:
        """Charge one request, unless one of the caller's quotas refuses it."""


class SharedAllowance:
    """`quotas` are the subject's and the tenant's; `max_processes` bounds how many share them."""

    def __init__(
        self,
        store: Store,
        subject: Quota,
        tenant: Quota,
        max_processes: int,
        *,
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._store = store
        self._quotas = (subject, tenant)
        self._buckets = [number for quota in self._quotas for number in (quota.size, quota.rate)]
        self._keys = lru_cache(REMEMBERED)(_keys)
        self._own = OwnShare([quota.share(max_processes) for quota in self._quotas], clock)

    async def charge(self, caller: Caller) -> Verdict:
        keys = self._keys(caller)
        try:
            verdict = await self._shared(keys)
        except StoreLost:
            return self._own.charge(keys, self._quotas)
        self._own.forget()
        return verdict

    async def check(self) -> None:
        """Raises StoreLost while the allowances are not shared. Charges nobody."""
        await self._shared(_tagged("check", ("subject", "tenant")))

    async def _shared(self, keys: Sequence[str]) -> Verdict:
        refuses, wait, *levels = await self._store.run("allowance", keys, REQUEST, *self._buckets)
        return _verdict(self._quotas, levels, refuses, wait / MICROSECONDS)


@dataclass(slots=True)
class Level:
    """Units at a microsecond."""

    time: int
    level: int


class OwnShare:
    """Buckets of this process alone. A share of None holds less than one request: it refuses."""

    def __init__(self, shares: Sequence[Quota | None], clock: Callable[[], int]) -> None:
        self._shares = shares
        self._clock = clock
        self._levels: dict[str, Level] = {}
        self._most = KEPT

    def forget(self) -> None:
        self._levels.clear()

    def charge(self, keys: Sequence[str], quotas: Sequence[Quota]) -> Verdict:
        shares = [share for share in self._shares if share]
        if len(shares) < len(self._shares):
            closed = self._shares.index(None)
            return Verdict((), quotas[closed].scope)
        now = self._clock() // 1_000
        self._drop_full(now)
        levels = [self._level(key, share, now) for key, share in zip(keys, shares, strict=True)]
        waits = [share.wait(level) for share, level in zip(shares, levels, strict=True)]
        wait = max(waits)
        if wait:
            return _verdict(shares, levels, waits.index(wait) + 1, wait / MICROSECONDS)
        levels = [level - REQUEST for level in levels]
        self._levels |= {key: Level(now, level) for key, level in zip(keys, levels, strict=True)}
        return _verdict(shares, levels, 0, 0)

    def _level(self, key: str, share: Quota, now: int) -> int:
        kept = self._levels.get(key)
        if kept is None:
            return share.size
        return min(share.size, kept.level + (now - kept.time) * share.rate)

    def _drop_full(self, now: int) -> None:
        if len(self._levels) < self._most:
            return
        slowest = max(share.size // share.rate + 1 for share in self._shares if share)
        self._levels = {
            key: kept for key, kept in self._levels.items() if now - kept.time < slowest
        }
        self._most = max(KEPT, 2 * len(self._levels))


def _verdict(
    quotas: Sequence[Quota], levels: Sequence[int], refuses: int, wait: float | None
) -> Verdict:
    standings = tuple(map(Standing.at, quotas, levels))
    if not refuses:
        return Verdict(standings)
    return Verdict(standings, quotas[refuses - 1].scope, wait)


def _keys(caller: Caller) -> list[str]:
    """Names are hashed: whatever they hold, they are short and change no hash tag."""
    return _tagged(_digest(caller.tenant), (f"subject:{_digest(caller.subject)}", "tenant"))


def _tagged(tag: str, names: Sequence[str]) -> list[str]:
    return [f"sluice:{{allowance:{tag}}}:{name}" for name in names]


def _digest(name: str) -> str:
    return hashlib.blake2b(name.encode(errors="surrogatepass"), digest_size=16).hexdigest()
