"""What one question may cost over all its calls to a provider, and what it has cost so far."""

from dataclasses import dataclass

from chassis.deadlines import Deadline
from services.generate.result import Spent

# With less time than this no model answers.
LEAST_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Budget:
    """`attempts` counts every physical call, `tokens` those read and written; None: no bound."""

    attempts: int
    tokens: int | None = None
    cost: float | None = None


@dataclass(frozen=True, slots=True)
class Estimate:
    """What one call costs at most."""

    read: int
    written: int
    cost: float

    @property
    def tokens(self) -> int:
        return self.read + self.written


@dataclass(frozen=True, slots=True)
class Used:
    """What a provider says that one call used; `charged` also counts what a model thought."""

    read: int
    written: int
    charged: int
    cost: float


@dataclass(slots=True)
class Ledger:
    """One question's budget while it is spent, and until when.

    A call is entered at its estimate when it begins; what is reported later takes its place, and
    without a report the estimate stays.
    """

    budget: Budget
    deadline: Deadline
    attempts: int = 0
    tokens: int = 0
    cost: float = 0.0
    read: int | None = None
    written: int | None = None
    model: str = ""

    def allows(self, estimate: Estimate, wait: float = 0.0) -> bool:
        """Whether one more call fits, begun after `wait` seconds."""
        budget = self.budget
        return (
            self.attempts < budget.attempts
            and (budget.tokens is None or self.tokens + estimate.tokens <= budget.tokens)
            and (budget.cost is None or self.cost + estimate.cost <= budget.cost)
            and self.deadline.remaining() - wait >= LEAST_SECONDS
        )

    def begin(self, estimate: Estimate) -> None:
        self.attempts += 1
        self.tokens += estimate.tokens
        self.cost += estimate.cost

    def report(self, estimate: Estimate, used: Used) -> None:
        self.tokens += used.charged - estimate.tokens
        self.cost += used.cost - estimate.cost
        self.read = (self.read or 0) + used.read
        self.written = (self.written or 0) + used.written

    def lasts_until(self, deadline: Deadline) -> None:
        """Somebody else waits for the same, perhaps for longer."""
        self.deadline = max(self.deadline, deadline, key=lambda each: each.at)

    def spent(self, model: str = "") -> Spent:
        return Spent(self.attempts, self.read, self.written, model or self.model)
