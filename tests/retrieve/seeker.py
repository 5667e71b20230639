"""Searches over one shelf without a model: a question's vector is what the test says."""

from collections.abc import Sequence
from dataclasses import dataclass

from capacity import Workload
from chassis.identity import AccessLevel, Caller
from services.retrieve.filters import Filters
from services.retrieve.index import Index
from services.retrieve.search import Result, Search, Wanted
from tests.retrieve.engine import Shelf

ANA = Caller("ana", "acme", AccessLevel.TEAM)


@dataclass(slots=True)
class Given:
    """The embedder: every question has this vector."""

    vector: list[float]

    async def embed(
        self, inputs: Sequence[str], tokens: Sequence[int], workload: Workload
    ) -> list[list[float]]:
        return [self.vector for _ in inputs]


def search(shelf: Shelf, vector: list[float], threshold: float | None = None) -> Search:
    index = Index(shelf.client, shelf.alias, shelf.profile)
    return Search(index, Given(vector), shelf.profile, lambda _text: 1, threshold)


async def ask(
    shelf: Shelf,
    caller: Caller = ANA,
    *,
    vector: list[float] | None = None,
    wanted: Wanted | None = None,
    threshold: float | None = None,
) -> Result:
    found = search(shelf, vector or axis(0), threshold)
    return await found.run(wanted or Wanted("What now?", Filters(), (), 100), caller)


def axis(number: int, size: int = 8) -> list[float]:
    return [float(place == number) for place in range(size)]


def ids(result: Result) -> list[str]:
    return [found.id for found in result.passages]
