"""The scripts take the same steps as the model, whatever comes in whatever order."""

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
AMOUNTS = st.integers(1, 100 * TOKEN) | st.integers(1, 1_200 * TOKEN)


class Steps(RuleBasedStateMachine):
    client: Redis

    @initialize(limits=st.sampled_from(POOLS))
    def begin(self, limits: Limits) -> None:
        self.client.delete(*pool.KEYS)
        self.scripts = Scripts(self.client, limits)
        self.model: Model | None = None

    @rule(microseconds=st.integers(0, 4 * SECOND))
    def time_passes(self, microseconds: int) -> None:
        self.scripts.now += microseconds

    @precondition(lambda self: self.model and self.model.leases)
    @rule(name=NAMES)
    def a_lease_lapses(self, name: str) -> None:
        assert self.model is not None
        if name in self.model.leases:
            self.scripts.now = max(self.scripts.now, self.model.leases[name].expiry)

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

    @rule(name=NAMES, batch=st.booleans(), tokens=AMOUNTS)
    def reserve(self, name: str, batch: bool, tokens: int) -> None:  # noqa: FBT001 - drawn
        before = pool.dump(self.client)
        known, time = self.model is not None, self.model.time if self.model else 0
        model = self.model or Model(self.scripts.limits, self.scripts.now)
        expected = model.reserve(Attempt(name, batch, tokens), self.scripts.now)
        assert self.scripts.reserve(name, tokens, batch=batch) == expected
        if expected[0] != 4:
            self.model = model
        if expected[0] and known and self.scripts.now >= time:
            assert pool.dump(self.client) == before

    @rule(name=NAMES, used=st.none() | AMOUNTS, begun=st.booleans())
    def settle(self, name: str, used: int | None, begun: bool) -> None:  # noqa: FBT001 - drawn
        units = -1 if used is None else used
        now = self.scripts.now
        expected = self.model is not None and self.model.settle(name, units, now, begun=begun)
        assert self.scripts.settle(name, units, begun=begun) == expected

    @rule(attempts=st.lists(st.tuples(NAMES, st.booleans(), AMOUNTS), max_size=3))
    def renew(self, attempts: list[tuple[str, bool, int]]) -> None:
        self.model = self.model or Model(self.scripts.limits, self.scripts.now)
        single = list({name: (name, batch, tokens) for name, batch, tokens in attempts}.values())
        expected = self.model.renew([Attempt(*one) for one in single], self.scripts.now)
        assert self.scripts.renew(*single) == expected

    @invariant()
    @precondition(lambda self: self.model is not None)
    def state_is_the_models(self) -> None:
        assert self.model is not None
        assert pool.level(self.client) == self.model.see()
        assert self.client.hget(pool.STATE, "opens") == str(self.model.opens).encode()
        leases = {name: lease.expiry for name, lease in self.model.leases.items()}
        stored = {name: self.client.zscore(pool.LEASES, name) for name in leases}
        assert stored == leases
        assert self.client.zcard(pool.LEASES) == len(leases)
        assert self.client.hlen(pool.STATE) == 2 + len(leases)


def test_the_scripts_do_what_the_model_does(client: Redis) -> None:
    class OnServer(Steps):
        pass

    OnServer.client = client
    run_state_machine_as_test(
        OnServer, settings=settings(max_examples=60, stateful_step_count=40, deadline=None)
    )
