"""Whatever the corpus and whoever asks: exactly the nearest of what the caller may read."""

import math
import random
from collections.abc import Iterator

from chassis.identity import AccessLevel, Caller
from corpus.epochs import LIVE
from corpus.points import State, StoredPassage
from services.retrieve.filters import Filters
from services.retrieve.search import Wanted
from tests.retrieve.engine import CHUNKING, SMALL, Shelf, passage
from tests.retrieve.seeker import ask, ids

PASSAGES = 600
QUERIES = 400
TENANTS = ("acme", "umbrella", "initech")
GROUPS = ("sre", "finance", "legal")
TYPES = ("runbook", "policy", "")
AREAS = ("storage", "network", "")
EPOCHS = {"acme": 3, "umbrella": 5}  # the third never published

Row = tuple[StoredPassage, list[float]]


async def test_every_search_returns_exactly_the_nearest_that_the_caller_may_read(
    shelf: Shelf,
) -> None:
    chance = random.Random(2026)
    rows = [_row(chance, number) for number in range(PASSAGES)]
    names = await shelf.put(*rows)
    for tenant, epoch in EPOCHS.items():
        await shelf.move_to(tenant, epoch)
    some = 0
    for caller, wanted, vector in _queries(chance):
        found = ids(await ask(shelf, caller, wanted=wanted, vector=vector))
        expected = _nearest(rows, names, caller, wanted, vector)
        assert found == expected
        some += bool(found)
    assert some > QUERIES // 4


def _row(chance: random.Random, number: int) -> Row:
    begin = chance.randint(1, 6)
    made = passage(
        tenant=chance.choice(TENANTS),
        document_id=f"document-{number % 40}",
        document_type=chance.choice(TYPES),
        area=chance.choice(AREAS),
        chunk=number,
        state=chance.choice([State.PUBLISHED, State.PUBLISHED, State.DRAFT]),
        access=chance.choice(list(AccessLevel)),
        groups=tuple(chance.sample(GROUPS, chance.choice([0, 0, 1, 2]))),
        chunking_version=chance.choice([CHUNKING] * 9 + ["blocks0"]),
        valid_from=begin,
        valid_to=chance.choice([LIVE, LIVE, begin, begin + 1, begin + 2]),
    )
    return made, _vector(chance)


def _queries(chance: random.Random) -> Iterator[tuple[Caller, Wanted, list[float]]]:
    for _ in range(QUERIES):
        drafts = chance.random() < 0.3
        caller = Caller(
            "someone",
            chance.choice(TENANTS),
            chance.choice(list(AccessLevel)),
            frozenset(chance.sample(GROUPS, chance.randint(0, 3))),
            frozenset({"drafts"} if drafts else ()),
        )
        filters = Filters(
            document_types=_some(chance, TYPES),
            document_ids=_some(chance, [f"document-{n}" for n in range(40)]),
            areas=_some(chance, AREAS),
        )
        states = chance.choice([(), (State.DRAFT,), (State.DRAFT, State.PUBLISHED)])
        top_k = chance.choice([1, 3, 8, 100])
        wanted = Wanted("What now?", filters, states if drafts else (), top_k)
        yield caller, wanted, _vector(chance)


def _some(chance: random.Random, values: tuple[str, ...] | list[str]) -> tuple[str, ...]:
    return tuple(chance.sample(values, len(values) // 2)) if chance.random() < 0.2 else ()


def _nearest(
    rows: list[Row], names: list[str], caller: Caller, wanted: Wanted, vector: list[float]
) -> list[str]:
    ranked = [
        (-_cosine(vector, its), name)
        for name, (each, its) in zip(names, rows, strict=True)
        if _may_read(each, caller, wanted.states or (State.PUBLISHED,))
        and _wanted(each, wanted.filters)
    ]
    return [name for _, name in sorted(ranked)[: wanted.top_k]]


def _may_read(each: StoredPassage, caller: Caller, states: tuple[State, ...]) -> bool:
    """Written down anew, so that it shares no mistake with the code that it judges."""
    epoch = EPOCHS.get(caller.tenant, 0)
    return (
        each.tenant == caller.tenant
        and each.valid_from <= epoch
        and epoch < each.valid_to
        and each.access <= caller.level
        and (each.groups == () or any(group in caller.groups for group in each.groups))
        and each.state in states
        and each.chunking_version == CHUNKING
    )


def _wanted(each: StoredPassage, filters: Filters) -> bool:
    return (
        (not filters.document_types or each.document_type in filters.document_types)
        and (not filters.document_ids or each.document_id in filters.document_ids)
        and (not filters.areas or each.area in filters.areas)
    )


def _vector(chance: random.Random) -> list[float]:
    return [chance.gauss(0, 1) for _ in range(SMALL.dimensions)]


def _cosine(one: list[float], two: list[float]) -> float:
    return sum(a * b for a, b in zip(one, two, strict=True)) / (math.hypot(*one) * math.hypot(*two))
