"""The one place that asks again, or asks another candidate."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum

from capacity import CapacityCircuitOpen, CapacityRefused, CapacityUnavailable
from chassis.errors import DeadlineExceeded, SluiceError
from providers.chat import Completion
from providers.failures import (
    AttemptTimeout,
    Incomplete,
    InvalidReply,
    ProviderUnavailable,
    Throttled,
)
from services.generate.attempt import Attempts
from services.generate.budget import LEAST_SECONDS
from services.generate.call import Call
from services.generate.failure import BudgetSpent
from services.generate.prompt import Prompt
from services.generate.result import Switch

# Calls to one candidate while another one could be asked.
TRIES_EACH = 2
# Seconds to wait where a throttle does not say how long; the pool cools down for as long.
UNSAID = 2.0


class Again(Enum):
    """Whether, and after how long, the same candidate is asked once more."""

    NEVER = "it would not help"
    BACKOFF = "after a pause that grows"
    RETRY_AFTER = "when the provider said"
    ROOM = "when there will be room, once, if the question is under way already"
    WHOLE = "at once, if a whole attempt's time is left"


@dataclass(frozen=True, slots=True)
class Rule:
    """What follows a failure. Where both could, `switches_first` decides."""

    again: Again
    switch: Switch
    of_another_pool: bool = False
    switches_first: bool = True


# By type, the first entry that fits. Everything else ends the question: credentials, an option that
# is not supported, a context that is too long, a refusal, a deadline, a broken answer, our bugs.
RULES: tuple[tuple[type[SluiceError], Rule], ...] = (
    (CapacityCircuitOpen, Rule(Again.NEVER, Switch.UNAVAILABLE, of_another_pool=True)),
    # It has waited for its turn as long as it may. But a throttle empties the pool, and whoever
    # was told to come back then is not turned away for having come.
    (CapacityRefused, Rule(Again.ROOM, Switch.CAPACITY, of_another_pool=True)),
    (CapacityUnavailable, Rule(Again.NEVER, Switch.CAPACITY, of_another_pool=True)),
    (Throttled, Rule(Again.RETRY_AFTER, Switch.CAPACITY, of_another_pool=True)),
    (AttemptTimeout, Rule(Again.WHOLE, Switch.TIMEOUT)),
    (ProviderUnavailable, Rule(Again.BACKOFF, Switch.UNAVAILABLE, switches_first=False)),
    (Incomplete, Rule(Again.BACKOFF, Switch.UNAVAILABLE, switches_first=False)),
    (InvalidReply, Rule(Again.BACKOFF, Switch.UNAVAILABLE, switches_first=False)),
)


@dataclass(frozen=True, slots=True)
class Pauses:
    """Seconds between attempts, doubling from `first` to `most`.

    Jitter halves a pause at most, and lengthens a provider's own by a quarter at most: nobody comes
    back before there can be room. `chance` is uniform from 0 to 1.
    """

    first: float = 0.25
    most: float = 4.0
    chance: Callable[[], float] = random.random
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    def backoff(self, tries: int) -> float:
        pause: float = min(self.most, self.first * 2 ** (tries - 1))
        return pause * (1 + self.chance()) / 2

    def asked(self, seconds: float) -> float:
        return seconds * (1 + self.chance() / 4)


@dataclass(frozen=True, slots=True)
class Retries:
    attempts: Attempts
    pauses: Pauses

    async def ask(self, call: Call, prompt: Prompt) -> Completion:
        """The first whole reply, by the candidate that the call's route names afterwards.

        Raises the last failure where nothing else fits the rules and the budget; where not even one
        attempt does, DeadlineExceeded or BudgetSpent. Once text was shown nothing is asked again.
        """
        if call.ledger.deadline.remaining() < LEAST_SECONDS:
            raise DeadlineExceeded("the time for this request is over")
        if not _fits(call, prompt):
            raise BudgetSpent("one call to the model is more than a question may cost")
        while True:
            call.route.tries += 1
            try:
                return await self.attempts.ask(call, call.route.candidate, prompt)
            except SluiceError as failure:
                if call.is_seen:
                    raise
                wait = self._next(call, prompt, failure)
                if wait is None:
                    raise
            if wait:
                call.tell("retry:wait")
                await self.pauses.sleep(wait)

    def _next(self, call: Call, prompt: Prompt, failure: SluiceError) -> float | None:
        """Seconds until the next attempt, by whom the route then says; None where there is none."""
        rule = next((rule for kind, rule in RULES if isinstance(failure, kind)), None)
        if rule is None:
            return None
        wait = self._wait(call, rule, failure)
        may_retry = wait is not None and _fits(call, prompt, wait)
        if may_retry and not rule.switches_first and call.route.tries < TRIES_EACH:
            return wait
        if _switched(call, prompt, rule):
            return 0.0
        return wait if may_retry else None

    def _wait(self, call: Call, rule: Rule, failure: SluiceError) -> float | None:
        """Seconds after which the same candidate may be asked again."""
        match rule.again:
            case Again.BACKOFF:
                return self.pauses.backoff(call.route.tries)
            case Again.RETRY_AFTER:
                return self.pauses.asked(failure.retry_after or UNSAID)
            case Again.ROOM:
                is_under_way = call.ledger.attempts and call.route.tries <= TRIES_EACH
                if failure.retry_after is None or not is_under_way:
                    return None
                return self.pauses.asked(failure.retry_after)
            case Again.WHOLE:
                whole = call.route.candidate.endpoint.attempt_seconds
                return 0.0 if call.ledger.deadline.remaining() >= whole else None
            case Again.NEVER:
                return None


def _switched(call: Call, prompt: Prompt, rule: Rule) -> bool:
    """Go on to the next candidate that fits, if there is one."""
    route = call.route
    for at in route.others(of_another_pool=rule.of_another_pool):
        if _fits_at(call, at, prompt):
            route.go(at, rule.switch)
            return True
    return False


def _fits(call: Call, prompt: Prompt, wait: float = 0.0) -> bool:
    return _fits_at(call, call.route.at, prompt, wait)


def _fits_at(call: Call, at: int, prompt: Prompt, wait: float = 0.0) -> bool:
    candidate = call.route.candidates[at]
    return call.ledger.allows(candidate.estimate(prompt), wait)
