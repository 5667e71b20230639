"""How many tokens the messages may have."""

from dataclasses import dataclass

from chassis.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class Budget:
    """In the generation model's tokens: its window, and what is kept free in it."""

    context_limit: int
    output_reserve: int
    framing_reserve: int

    @property
    def allowance(self) -> int:
        return self.context_limit - self.output_reserve - self.framing_reserve


def require_room(budget: Budget, needed: int) -> None:
    """Raises InvalidInput with both numbers when instructions and question alone do not fit."""
    allowance = max(budget.allowance, 0)
    if needed > allowance:
        raise InvalidInput(
            f"instructions and question need {needed} tokens, the budget allows {allowance}",
            field="budget",
            reason="BUDGET_TOO_SMALL",
            metadata={"needed": str(needed), "allowance": str(allowance)},
        )
