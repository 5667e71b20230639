"""The caller's allowance: the script and a process's own share, step by step against a model."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis import Redis

from capacity.pool import REQUEST, WINDOW
from chassis.identity import AccessLevel, Caller
from gateway.allowance import OwnShare, _keys
from gateway.quota import Quota, Standing, fields
from gateway.store import script
from tests.capacity.server import Server

SECOND = 1_000_000
CLOCK, TEST_CLOCK = "local clock = redis.call('TIME')", "local clock = {0, ARGV[#ARGV]}"
# The server's own clock must not drop what the test's clock has not filled yet.
KEPT = 3_600_000
EXPIRY, TEST_EXPIRY = "'PX', full_in", f"'PX', full_in + {KEPT}"


def caller(subject: str = "ana", tenant: str = "acme") -> Caller:
    return Caller(subject, tenant, AccessLevel.TEAM)


@dataclass
class Model:
    """Token buckets in requests and microseconds, without any rounding."""

    limits: list[tuple[Fraction, Fraction]]
    levels: dict[str, tuple[int, Fraction]] = field(default_factory=dict)

    def charge(self, keys: list[str], now: int) -> tuple[int, int, list[Fraction]]:
        levels, waits = [], []
        for key, (rate, burst) in zip(keys, self.limits, strict=True):
            time, level = self.levels.get(key, (now, burst))
            level = min(burst, level + rate * max(0, now - time))
            if now < time:
                self.levels[key] = now, level
            levels.append(level)
            waits.append(max(0, ceil((1 - level) / rate)))
        wait = max(waits)
        if wait:
            return waits.index(wait) + 1, wait, levels
        levels = [level - 1 for level in levels]
        self.levels |= {key: (now, level) for key, level in zip(keys, levels, strict=True)}
        return 0, 0, levels


def model_of(*quotas: Quota | None) -> Model:
    return Model(
        [(Fraction(q.rate, REQUEST), Fraction(q.size, REQUEST)) for q in quotas if q is not None]
    )


@pytest.fixture(scope="module")
def client(redis_server: Server) -> Iterator[Redis]:
    with Redis.from_url(redis_server.url) as client:
        yield client


@dataclass
class Charging:
    """The script under a clock of the test's own."""

    client: Redis
    quotas: tuple[Quota, Quota]

    def __post_init__(self) -> None:
        text = script("allowance").text
        assert text.count(CLOCK) == text.count(EXPIRY) == 1
        self.text = text.replace(CLOCK, TEST_CLOCK).replace(EXPIRY, TEST_EXPIRY)

    def charge(self, keys: list[str], now: int) -> list[int]:
        buckets = [number for quota in self.quotas for number in (quota.size, quota.rate)]
        reply: list[int] = self.client.eval(self.text, len(keys), *keys, REQUEST, *buckets, now)
        return reply

    def full_in(self, key: str) -> int:
        """Milliseconds, by the key's own expiry."""
        left: int = self.client.pttl(key)
        return left - KEPT


def quota(scope: str) -> st.SearchStrategy[Quota]:
    """Limits in hundredths and bursts in billionths of a request."""
    rates = st.integers(1, 100) | st.integers(1, 6_000_000)
    bursts = st.integers(10**9, 5 * 10**9) | st.integers(10**9, 10**13)
    return st.builds(
        lambda rate, burst: Quota(scope, 0, burst * REQUEST // 10**9, rate), rates, bursts
    )


MOVES = st.integers(0, 3 * SECOND) | st.integers(0, 3_600 * SECOND) | st.integers(-(10**12), 0)
STEPS = st.lists(st.tuples(st.sampled_from(["ana", "bo"]), MOVES), max_size=30)


@settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(quota("subject"), quota("tenant"), STEPS)
def test_the_script_grants_what_the_model_grants(
    client: Redis, subject: Quota, tenant: Quota, steps: list[tuple[str, int]]
) -> None:
    client.flushall()
    script, model = Charging(client, (subject, tenant)), model_of(subject, tenant)
    now = latest = 10**15
    for name, move in steps:
        now += move
        latest = max(latest, now)
        keys = _keys(caller(name))
        refuses, wait, levels = model.charge(keys, now)
        before = [client.get(key) for key in keys]
        reply = script.charge(keys, now)
        assert reply == [refuses, wait, *(level * REQUEST for level in levels)]
        if refuses and now == latest:
            assert [client.get(key) for key in keys] == before
        for key, level, one in zip(keys, levels, script.quotas, strict=True):
            if not refuses:
                full_in = ceil((one.size - level * REQUEST) / one.rate / 1_000) + 1
                assert full_in - 1_000 < script.full_in(key) <= full_in


@settings(max_examples=120, deadline=None)
@given(quota("subject"), quota("tenant"), STEPS)
def test_a_processs_own_share_grants_what_the_model_grants(
    subject: Quota, tenant: Quota, steps: list[tuple[str, int]]
) -> None:
    now = 10**15
    own, model = OwnShare([subject, tenant], lambda: 1_000 * now), model_of(subject, tenant)
    for name, move in steps:
        now += abs(move)
        keys = _keys(caller(name))
        refuses, wait, levels = model.charge(keys, now)
        verdict = own.charge(keys, (subject, tenant))
        assert verdict.refused_by == ("", "subject", "tenant")[refuses]
        assert verdict.retry_after == (wait / SECOND if refuses else None)
        assert [one.left for one in verdict.standings] == [int(level) for level in levels]


@given(
    st.integers(1, 10**6), st.integers(1, 10**6), st.integers(1, 64), st.integers(0, 120 * SECOND)
)
def test_all_shares_together_grant_no_more_than_the_whole(
    limit: int, burst: int, processes: int, time: int
) -> None:
    whole = Quota.of("subject", limit + burst, burst)
    share = whole.share(processes)
    window = time // WINDOW + 1
    granted = 0 if share is None else processes * (share.size + share.rate * WINDOW * window)
    assert granted <= (limit + burst) * REQUEST * window


def test_a_share_below_one_request_refuses_and_knows_no_wait() -> None:
    whole = Quota.of("subject", 4, 2)
    verdict = OwnShare([whole.share(8)] * 2, lambda: 0).charge(["a", "b"], [whole, whole])
    assert (verdict.refused_by, verdict.retry_after, verdict.standings) == ("subject", None, ())


def test_full_buckets_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.allowance.KEPT", 10)
    now, one = 0, Quota.of("subject", 120, 60)
    own = OwnShare([one, one], lambda: now)
    for number in range(1_000):
        now += SECOND * 1_000
        own.charge(_keys(caller(f"subject-{number}")), [one, one])
    assert len(own._levels) < 150  # sixty seconds fill a bucket


@pytest.mark.parametrize(("limit", "burst"), [(10, 0.5), (10, 10), (10, 11), (10**8, 2 * 10**6)])
def test_a_burst_that_cannot_hold_is_refused(limit: float, burst: float) -> None:
    with pytest.raises(ValueError, match="must hold one request"):
        Quota.of("subject", limit, burst)


NAMES = ["ana", "ana}", "{x}", "", "a" * 100_000, "\ud800", "\x00\r\n", "é"]


def test_names_of_any_kind_make_short_keys_of_one_hash_tag_and_none_is_anothers() -> None:
    pairs = [(subject, tenant) for subject in NAMES for tenant in NAMES]
    keys = [tuple(_keys(caller(*pair))) for pair in pairs]
    assert len(set(keys)) == len(pairs)
    for both in keys:
        tags = {key[key.index("{") + 1 : key.index("}")] for key in both}
        assert len(tags) == 1
        assert all(len(key) < 100 and key.isascii() and key.count("{") == 1 for key in both)


def test_the_fields_say_what_is_left_and_when_there_is_more() -> None:
    one = Quota.of("subject", 60, 30)
    spent = Standing.at(one, REQUEST * 3 // 2)
    assert (spent.left, spent.more_in) == (1, 1.0)
    assert Standing.at(one, one.size).more_in == 0
    assert Standing.at(one, -REQUEST).left == 0
    assert fields(()) == {}
    assert fields((spent,)) == {
        "RateLimit-Policy": '"subject";q=60;w=60',
        "RateLimit": '"subject";r=1;t=1',
    }
