"""A line of the table that `make bench` prints, in the shape that every benchmark's JSON holds.

A row is a figure beside a floor or a peer of the same run, and what it is to reach.
"""

from dataclasses import dataclass
from typing import Any, Literal

Judged = Literal["figure", "ratio"]


@dataclass(frozen=True, slots=True)
class Reach:
    """What a figure, or its ratio to what stands beside it, may be at most, or at least."""

    limit: float
    judged: Judged = "ratio"
    least: bool = False

    def told(self, unit: str) -> str:
        sign = ">=" if self.least else "<="
        return f"{sign} {self.limit:g} {'x' if self.judged == 'ratio' else unit}".rstrip()

    def met(self, figure: float, ratio: float | None) -> bool | None:
        """None where there is nothing to judge."""
        found = ratio if self.judged == "ratio" else figure
        if found is None:
            return None
        return found >= self.limit if self.least else found <= self.limit


def row(  # noqa: PLR0913 - one argument a column
    what: str,
    figure: float,
    unit: str,
    reach: Reach | None = None,
    *,
    beside: str = "",
    than: float | None = None,
    ratio: float | None = None,
) -> dict[str, Any]:
    """`than` is the figure of what stands `beside`; the ratio is ours to it unless it is told."""
    if ratio is None and than:
        ratio = figure / than
    return {
        "what": what,
        "figure": round(figure, 3),
        "unit": unit,
        "beside": beside,
        "than": None if than is None else round(than, 3),
        "ratio": None if ratio is None else round(ratio, 3),
        "reach": reach.told(unit) if reach else "",
        "met": reach.met(figure, ratio) if reach else None,
    }
