"""What one attempt takes from the pool, and what it really used."""

import itertools
import secrets
import struct
from dataclasses import dataclass, field

from capacity.pool import TOKEN, Workload

UNKNOWN, NEVER_BEGAN = -1, -2
_MEMBER = struct.Struct("<Bd")
_process = secrets.token_hex(12)
_numbers = itertools.count()


def _name() -> str:
    """Nobody else's: a random name for this process and a number of its own."""
    return f"{_process}{next(_numbers):x}"


@dataclass(slots=True, eq=False)
class Reservation:
    """One request, `tokens` estimated tokens and one place in flight, until it is settled."""

    workload: Workload
    tokens: int
    id: str = field(default_factory=_name)
    used: int | None = None
    begun: bool = True
    # What stands for it in the pool's sets.
    member: bytes = field(init=False, repr=False)
    # Granted by this process's own share while Redis was lost: settled there too.
    local: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        if self.tokens < 1:
            raise ValueError(f"an attempt needs at least one token, not {self.tokens}")
        self._name_member()

    def report(self, tokens: int) -> None:
        """The attempt used this many tokens. The last report counts; without one, the estimate."""
        if tokens < 0:
            raise ValueError(f"tokens used cannot be negative: {tokens}")
        self.used = tokens

    def not_begun(self) -> None:
        """The attempt never reached the provider: request and tokens are given back too."""
        self.begun = False

    def rename(self) -> None:
        """What was asked under the old id may still be granted, and is given back by it."""
        self.id = _name()
        self._name_member()

    def settlement(self) -> int:
        """Units of tokens used, UNKNOWN or NEVER_BEGAN."""
        if not self.begun:
            return NEVER_BEGAN
        return UNKNOWN if self.used is None else self.used * TOKEN

    def _name_member(self) -> None:
        batch = self.workload is Workload.BATCH
        self.member = _MEMBER.pack(batch, self.tokens * TOKEN) + self.id.encode()
