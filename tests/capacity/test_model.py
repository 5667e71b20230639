"""The scripts take the same steps as the model, whatever comes in whatever order."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from redis import Redis

from capacity import Limits
from capacity.pool import TOKEN
from tests.capacity import pool
from tests.capacity.model import Attempt, Model
from tests.capacity.pool import SECOND, Scripts

POOLS = [
    Limits(60, 6_000, 3, 200, interactive_reserve=0.3),
    Limits(8.5, 1_000, 2, 100, interactive_reserve=0.5, request_burst=3),
    Limits(600_000, 1e8, 5, 1_000, interactive_reserve=0, token_burst=1_000),
    Limits(1_200, 60_000, 1, 500, interactive_reserve=1),
]
NAMES = st.sampled_from("abcdefgh")
WAITS = st.just(0) | st.integers(1, 60 * SECOND)
AMOUNTS = st.integers(1, 100 * TOKEN) | st.integers(1, 1_200 * TOKEN)


class Steps(RuleBasedStateMachine):
    client: Redis
    compared = 0  # how often the state was the model's

    @initialize(limits=st.sampled_from(POOLS))
    def begin(self, limits: Limits) -> None:
        self.client.delete(*pool.KEYS)
        self.scripts = Scripts(self.client, limits)
        self.model: Model | None = None
        self.attempts: dict[str, Attempt] = {}

    @rule(microseconds=st.integers(0, 4 * SECOND))
    def time_passes(self, microseconds: int) -> None:
        self.scripts.now += microseconds

    @rule(name=NAMES)
    def a_moment_comes(self, name: str) -> None:
        """When its lease lapses, or it may begin."""
        attempt = self.attempts.get(name)
        if self.model is not None and attempt is not None:
            moments = self.model.running | self.model.waiting
            self.scripts.now = max(self.scripts.now, moments.get(attempt, 0))

    @rule()
    def the_cooldown_ends(self) -> None:
        if self.model is not None:
            self.scripts.now = max(self.scripts.now, self.model.cool_end)

    @rule(seconds=st.integers(10, 3_600))
    def much_time_passes(self, seconds: int) -> None:
        self.scripts.now += seconds * SECOND

    @rule(microseconds=st.integers(1, 3_600 * SECOND))
    def clock_goes_back(self, microseconds: int) -> None:
        self.scripts.now -= microseconds

    @rule()
    def state_is_lost(self) -> None:
        self.client.flushall()
        self.model = None

    @rule(name=NAMES, batch=st.booleans(), tokens=AMOUNTS, max_wait=WAITS)
    def reserve(self, name: str, batch: bool, tokens: int, max_wait: int) -> None:  # noqa: FBT001 - drawn
        self.attempts[name] = Attempt(name, batch, tokens)
        self._reserve(name, max_wait)

    @precondition(lambda self: self.attempts)
    @rule(data=st.data(), max_wait=WAITS)
    def reserve_again(self, data: st.DataObject, max_wait: int) -> None:
        self._reserve(data.draw(st.sampled_from(sorted(self.attempts))), max_wait)

    @rule(name=NAMES)
    def begin_attempt(self, name: str) -> None:
        attempt, now = (
            self.attempts.get(name, Attempt(name, batch=False, tokens=1)),
            self.scripts.now,
        )
        expected = self.model.begin(attempt, now) if self.model is not None else [7, -1]
        assert self.scripts.begin(name) == expected

    @rule(name=NAMES, used=st.sampled_from([-1, pool.NEVER_BEGAN]) | AMOUNTS)
    def settle(self, name: str, used: int) -> None:
        attempt, now = (
            self.attempts.get(name, Attempt(name, batch=False, tokens=1)),
            self.scripts.now,
        )
        expected = self.model is not None and self.model.settle(attempt, used, now)
        assert self.scripts.settle(name, used) == expected

    @rule(attempts=st.lists(st.builds(Attempt, NAMES, st.booleans(), AMOUNTS), max_size=3))
    def renew(self, attempts: list[Attempt]) -> None:
        self.model = self.model or Model(self.scripts.limits, self.scripts.now)
        single = {attempt.name: attempt for attempt in attempts}
        self.attempts |= single
        expected = self.model.renew(list(single.values()), self.scripts.now)
        assert self.scripts.renew(*single.values()) == expected

    @rule(microseconds=st.integers(1, 20 * SECOND))
    def cool_down(self, microseconds: int) -> None:
        self.model = self.model or Model(self.scripts.limits, self.scripts.now)
        expected = self.model.cool_down(microseconds, self.scripts.now)
        assert self.scripts.cool_down(microseconds) == expected

    @rule()
    def look(self) -> None:
        expected = self.model.snapshot(self.scripts.now) if self.model is not None else []
        assert self.scripts.snapshot() == expected

    def _reserve(self, name: str, max_wait: int) -> None:
        before, attempt = pool.dump(self.client), self.attempts[name]
        known, time = self.model is not None, self.model.time if self.model else 0
        model = self.model or Model(self.scripts.limits, self.scripts.now)
        expected = model.reserve(attempt, self.scripts.now, max_wait)
        reply = self.scripts.reserve(name, attempt.tokens, batch=attempt.batch, max_wait=max_wait)
        assert reply == expected
        if known or expected != [4, -1]:
            self.model = model
        is_refused = expected[0] not in {0, 6}
        if is_refused and known and self.scripts.now >= time:
            assert pool.dump(self.client) == before

    @invariant()
    @precondition(lambda self: self.model is not None)
    def state_is_the_models(self) -> None:
        assert self.model is not None
        assert pool.level(self.client) == self.model.see()
        for key, dated in ((pool.LEASES, self.model.running), (pool.WAITING, self.model.waiting)):
            members = {pool.member(o.name, o.tokens, batch=o.batch): d for o, d in dated.items()}
            assert pool.dates(self.client, key) == members
        type(self).compared += 1


@pytest.mark.parametrize(
    "examples",
    [pytest.param(40, id="short"), pytest.param(3_000, id="long", marks=pytest.mark.soak)],
)
def test_the_scripts_do_what_the_model_does(client: Redis, examples: int) -> None:
    class OnServer(Steps):
        pass

    OnServer.client = client
    run_state_machine_as_test(
        OnServer, settings=settings(max_examples=examples, stateful_step_count=40, deadline=None)
    )
    assert OnServer.compared > examples
