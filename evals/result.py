"""What a run found on one case."""

from collections.abc import Sequence
from dataclasses import dataclass

from evals.answers import Answered
from evals.case import Expected
from evals.retrieval import Retrieved


@dataclass(frozen=True, slots=True)
class CaseResult:
    """Its passages where retrieve was asked, its answers, one a repeat, where the suite was."""

    id: str
    category: str
    severity: str
    question: str
    expected: Expected
    retrieved: Retrieved | None
    answers: Sequence[Answered]

    @property
    def outcomes(self) -> Sequence[str]:
        """Mode and reason of each answer."""
        return [f"{answer.mode} {answer.reason}" for answer in self.answers]

    @property
    def correct(self) -> bool | None:
        """Whether every answer was; None without any."""
        return all(answer.correct for answer in self.answers) if self.answers else None
