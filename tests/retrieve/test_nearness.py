"""A graph over many vectors, searched as the stage does, against looking at every vector."""

from __future__ import annotations  # the stubs' aliases do not exist at run time

import uuid
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import qdrant_edge as edge
from numpy.typing import NDArray

from chassis.identity import AccessLevel, Caller
from corpus import collection
from corpus.points import State, to_payload
from corpus.qdrant import wire
from corpus.scope import Scope
from local.qdrant_node.filters import engine_filter
from local.qdrant_node.queries import _search_params
from services.retrieve.index import NEAREST
from tests.retrieve.engine import CHUNKING, passage

VECTORS, SIZE, TOPICS = 20_000, 384, 1_000
QUERIES, TOP = 200, 10
BATCH = 1_000
LEVELS = list(AccessLevel)
GROUPS = (("sre",), ("legal",), ())

Floats = NDArray[np.float64]


@pytest.mark.soak
def test_a_built_graph_loses_at_most_one_in_two_hundred_of_the_nearest(tmp_path: Path) -> None:
    draw = np.random.default_rng(7)
    topics = draw.normal(size=(TOPICS, SIZE))
    shard = _filled(tmp_path, _about(draw, topics, VECTORS))
    shard.optimize()
    assert shard.info().indexed_vectors_count == VECTORS
    caller = Caller("ana", "acme", AccessLevel.TEAM, frozenset({"sre"}))
    scope = Scope.of(caller, epoch=1, states=(State.PUBLISHED,), chunking_version=CHUNKING)
    condition = engine_filter(scope.filter())
    found = wanted = 0
    for query in _about(draw, topics, QUERIES):
        exact = _nearest(shard, query, condition, edge.SearchParams(exact=True))
        level = wire.QueryPoints(params=NEAREST)
        found += len(exact & _nearest(shard, query, condition, _search_params(level)))
        wanted += len(exact)
    shard.close()
    assert wanted == QUERIES * TOP
    assert found >= 0.995 * wanted


def _about(draw: np.random.Generator, topics: Floats, count: int) -> Floats:
    """Vectors near topics, as texts are, rather than all over the place."""
    made = topics[draw.integers(len(topics), size=count)] + draw.normal(size=(count, SIZE))
    units: Floats = made / np.linalg.norm(made, axis=1, keepdims=True)
    return units


def _filled(folder: Path, vectors: Floats) -> edge.EdgeShard:
    params = edge.EdgeVectorParams(size=SIZE, distance=edge.Distance.Cosine)
    config = edge.EdgeConfig(vectors={collection.DENSE: params})
    shard = edge.EdgeShard.create(str(folder), config)
    for field, kind in collection.INDEXES.items():
        schema = getattr(edge.PayloadSchemaType, kind.capitalize())
        shard.update(edge.UpdateOperation.create_field_index(field, schema))
    for first in range(0, len(vectors), BATCH):
        points = list(_points(vectors, first))
        shard.update(edge.UpdateOperation.upsert_points(points))
    return shard


def _points(vectors: Floats, first: int) -> Iterator[edge.Point]:
    for number in range(first, first + BATCH):
        made = passage(
            chunk=number,
            access=LEVELS[number % len(LEVELS)],
            groups=GROUPS[number % 7 % len(GROUPS)],
            tenant="acme" if number % 5 else "umbrella",
        )
        yield edge.Point(
            id=uuid.UUID(int=number + 1),
            vector={collection.DENSE: vectors[number].tolist()},
            payload=to_payload(made),
        )


def _nearest(
    shard: edge.EdgeShard, query: Floats, condition: edge.Filter, params: edge.SearchParams | None
) -> set[edge.PointId]:
    asked = edge.QueryRequest(
        limit=TOP,
        offset=0,
        query=edge.Query.Nearest(query.tolist(), using=collection.DENSE),
        filter=condition,
        params=params,
    )
    return {hit.id for hit in shard.query(asked)}
