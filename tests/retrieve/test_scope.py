"""Whatever the corpus and whoever asks: exactly the best of what the caller may read."""

import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pytest

from chassis.identity import AccessLevel, Caller
from corpus.bm25 import SparseVector, document_vector, question_vector
from corpus.epochs import LIVE
from corpus.points import Kind, State, StoredBlock, StoredPassage
from services.retrieve.filters import Filters
from services.retrieve.fuse import TELLING, Fusion, Space
from services.retrieve.search import Mode, Ranking, Result, Wanted
from tests.retrieve.engine import CHUNKING, SMALL, Shelf, passage
from tests.retrieve.seeker import ask

PASSAGES = 400
TENANTS = ("acme", "umbrella", "initech")
GROUPS = ("sre", "finance", "legal")
TYPES = ("runbook", "policy", "")
AREAS = ("storage", "network", "")
WORDS = ("disk", "queue", "replica", "deployments", "backup", "drain", "node", "写入", "磁盘", "é")
EPOCHS = {"acme": 3, "umbrella": 5}  # the third never published
NEAR = 1e-4  # what 32-bit floats may differ by

Row = tuple[StoredPassage, list[float]]


@dataclass(frozen=True, slots=True)
class Asked:
    """One search: who looks for what, and how."""

    caller: Caller
    wanted: Wanted
    vector: list[float]
    ranking: Ranking

    @property
    def epoch(self) -> int:
        return EPOCHS.get(self.caller.tenant, 0)


@pytest.mark.parametrize("seed", [1, 2])
async def test_every_search_returns_exactly_the_best_that_the_caller_may_read(
    shelf: Shelf, seed: int
) -> None:
    assert await _searched(shelf, random.Random(seed), 100) > 25


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 125))
async def test_ten_thousand_searches_return_exactly_the_best(shelf: Shelf, seed: int) -> None:
    assert await _searched(shelf, random.Random(seed), 400) > 100


async def _searched(shelf: Shelf, chance: random.Random, queries: int) -> int:
    """How many searches of a random corpus found anything."""
    rows = [_row(chance, number) for number in range(PASSAGES)]
    names = await shelf.put(*rows)
    stored = dict(zip(names, rows, strict=True))
    for tenant, epoch in EPOCHS.items():
        await shelf.move_to(tenant, epoch)
    some = 0
    for _ in range(queries):
        asked = _asked(chance)
        found = await ask(
            shelf,
            asked.caller,
            wanted=asked.wanted,
            vector=asked.vector,
            ranking=asked.ranking,
        )
        _judge(found, asked, stored)
        some += bool(found.passages)
    return some


def _judge(found: Result, asked: Asked, stored: Mapping[str, Row]) -> None:
    readable = {name: row for name, row in stored.items() if _may_read(row[0], asked)}
    entitled = [row[0].text for row in stored.values() if _has_right_to(row[0], asked)]
    exact = _exact(asked, readable, entitled)
    ids = [one.id for one in found.passages]
    assert readable.keys() >= set(ids)
    assert len(set(ids)) == len(ids)
    assert exact.keys() >= set(ids)
    # Equal scores may stand in for each other; all else has to be there, in its order.
    best = sorted(exact.values(), reverse=True)[: asked.wanted.top_k]
    assert [one.score for one in found.passages] == pytest.approx(best, abs=NEAR, rel=NEAR)
    assert [exact[name] for name in ids] == pytest.approx(best, abs=NEAR, rel=NEAR)


def _exact(asked: Asked, readable: Mapping[str, Row], entitled: Sequence[str]) -> dict[str, float]:
    """Score by id of every passage that a full search finds."""
    kept = {name: row for name, row in readable.items() if _wanted(row[0], asked.wanted.filters)}
    dense = {name: _cosine(asked.vector, vector) for name, (_, vector) in kept.items()}
    sparse = _by_words(asked.wanted.question, kept, entitled)
    match asked.wanted.mode:
        case Mode.DENSE:
            return dense
        case Mode.SPARSE:
            return sparse
    rank, weight = _ranks, asked.ranking.fusion.dense_weight
    if asked.ranking.fusion.space is Space.MIN_MAX:
        rank, whole = _stretched, sum(question_vector(asked.wanted.question).values)
        weight = 1 - (1 - weight) * min(1, max(sparse.values(), default=0) / whole / TELLING)
    one, other = rank(dense), rank(sparse)
    return {
        name: weight * one.get(name, 0) + (1 - weight) * other.get(name, 0)
        for name in dense | sparse
    }


def _by_words(question: str, kept: Mapping[str, Row], entitled: Sequence[str]) -> dict[str, float]:
    """BM25 with each word as rare as it is among what the caller has a right to at any time."""
    stored = {name: _weights(document_vector(row[0].text)) for name, row in kept.items()}
    having = Counter(number for text in entitled for number in document_vector(text).indices)
    count = len(entitled)
    rarity = {
        number: math.log((count - known + 0.5) / (known + 0.5) + 1)
        for number, known in having.items()
    }
    asked = _weights(question_vector(question))
    return {
        name: sum(asked[number] * weights[number] * rarity[number] for number in shared)
        for name, weights in stored.items()
        if (shared := asked.keys() & weights.keys())
    }


def _weights(vector: SparseVector) -> dict[int, float]:
    return dict(zip(vector.indices, vector.values, strict=True))


def _ranks(scores: Mapping[str, float]) -> dict[str, float]:
    ranked = sorted(scores, key=lambda name: (-round(scores[name], 6), name))
    return {name: 1 / (60 + place) for place, name in enumerate(ranked, 1)}


def _stretched(scores: Mapping[str, float]) -> dict[str, float]:
    low, high = min(scores.values(), default=0), max(scores.values(), default=0)
    if high - low < NEAR:
        return dict.fromkeys(scores, 1.0)
    return {name: (score - low) / (high - low) for name, score in scores.items()}


def _row(chance: random.Random, number: int) -> Row:
    begin = chance.randint(1, 6)
    text = " ".join(chance.choices(WORDS, k=chance.randint(1, 30)))
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
        blocks=(StoredBlock(0, 0, Kind.PARAGRAPH, 0, len(text), text),),
        valid_from=begin,
        valid_to=chance.choice([LIVE, LIVE, begin, begin + 1, begin + 2]),
    )
    return made, _vector(chance)


def _asked(chance: random.Random) -> Asked:
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
    wanted = Wanted(
        question=" ".join(chance.choices([*WORDS, "unheard"], k=chance.randint(1, 4))),
        filters=filters,
        states=states if drafts else (),
        top_k=chance.choice([1, 3, 8, 100]),
        mode=chance.choice(list(Mode)),
        diversity=0.0,
    )
    space = chance.choice([Space.MIN_MAX, Space.MIN_MAX, Space.RRF])
    ranking = Ranking(Fusion(space, chance.choice([0.3, 0.5])), PASSAGES, {})
    return Asked(caller, wanted, _vector(chance), ranking)


def _some(chance: random.Random, values: Sequence[str]) -> tuple[str, ...]:
    return tuple(chance.sample(values, len(values) // 2)) if chance.random() < 0.2 else ()


def _may_read(each: StoredPassage, asked: Asked) -> bool:
    """Written down anew, so that it shares no mistake with the code that it judges."""
    return (
        _has_right_to(each, asked)
        and each.valid_from <= asked.epoch
        and asked.epoch < each.valid_to
        and each.chunking_version == CHUNKING
    )


def _has_right_to(each: StoredPassage, asked: Asked) -> bool:
    caller = asked.caller
    return (
        each.tenant == caller.tenant
        and each.access <= caller.level
        and (each.groups == () or any(group in caller.groups for group in each.groups))
        and each.state in (asked.wanted.states or (State.PUBLISHED,))
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
