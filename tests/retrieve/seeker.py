"""Searches over one shelf without a model: a question's vector is what the test says."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from capacity import Workload
from chassis.identity import AccessLevel, Caller
from services.retrieve.embed import Embeddings
from services.retrieve.filters import Filters
from services.retrieve.fuse import Fusion, Space
from services.retrieve.index import Index
from services.retrieve.search import Mode, Ranking, Result, Search, Wanted
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


FUSION = Fusion(Space.MIN_MAX, 0.5)


def search(shelf: Shelf, vector: list[float], ranking: Ranking | None = None) -> Search:
    return Search(
        index=Index(shelf.qdrant, shelf.alias, shelf.profile),
        embeddings=Embeddings(Given(vector), kept=0),
        profile=shelf.profile,
        count=lambda _text: 1,
        ranking=ranking or Ranking(FUSION, 50, {}),
    )


def asked(**known: object) -> Wanted:
    usual = Wanted("What now?", Filters(), (), 100, Mode.DENSE, 0.0)
    return replace(usual, **known)  # type: ignore[arg-type] # by name


async def ask(
    shelf: Shelf,
    caller: Caller = ANA,
    *,
    vector: list[float] | None = None,
    wanted: Wanted | None = None,
    ranking: Ranking | None = None,
) -> Result:
    found = search(shelf, vector or axis(0), ranking)
    return await found.run(wanted or asked(), caller)


def axis(number: int, size: int = 8) -> list[float]:
    return [float(place == number) for place in range(size)]


def ids(result: Result) -> list[str]:
    return [found.id for found in result.passages]
