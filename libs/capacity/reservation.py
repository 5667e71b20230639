"""What one attempt takes from the pool, and what it really used."""

import uuid
from dataclasses import dataclass, field

from capacity.pool import Workload


@dataclass(slots=True, eq=False)
class Reservation:
    """One request, `tokens` estimated tokens and one place in flight, until it is settled."""

    workload: Workload
    tokens: int
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    used: int | None = None
    begun: bool = True

    def __post_init__(self) -> None:
        if self.tokens < 1:
            raise ValueError(f"an attempt needs at least one token, not {self.tokens}")

    def report(self, tokens: int) -> None:
        """The attempt used this many tokens. The last report counts; without one, the estimate."""
        if tokens < 0:
            raise ValueError(f"tokens used cannot be negative: {tokens}")
        self.used = tokens

    def not_begun(self) -> None:
        """The attempt never reached the provider: request and tokens are given back too."""
        self.begun = False
