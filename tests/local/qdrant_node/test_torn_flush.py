"""A node killed while it flushes: its indexes are on disk, what they describe only in its log."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import qdrant_edge as edge
from qdrant_client import grpc as wire

from local.qdrant_node.database import Database
from local.qdrant_node.points_service import PointsService

NAME = "torn"
POINT = wire.PointId(num=1)
CONTEXT: Any = None  # no method reads it
AT = "at"


def where(value: int) -> wire.Filter:
    equal = wire.FieldCondition(key=AT, match=wire.Match(integer=value))
    named = wire.HasIdCondition(has_id=[POINT])
    return wire.Filter(must=[wire.Condition(has_id=named), wire.Condition(field=equal)])


def chosen(value: int) -> wire.PointsSelector:
    return wire.PointsSelector(filter=where(value))


def payload(value: int) -> dict[str, wire.Value]:
    return {AT: wire.Value(integer_value=value)}


def point(value: int) -> wire.PointStruct:
    vectors = wire.Vectors(
        vectors=wire.NamedVectors(vectors={"": wire.Vector(dense=wire.DenseVector(data=[1, 0]))})
    )
    return wire.PointStruct(id=POINT, vectors=vectors, payload=payload(value))


def set_payload(service: PointsService, value: int) -> None:
    request = wire.SetPayloadPoints(
        collection_name=NAME, payload=payload(value + 1), points_selector=chosen(value)
    )
    service.SetPayload(request, CONTEXT)


def overwrite_payload(service: PointsService, value: int) -> None:
    request = wire.SetPayloadPoints(
        collection_name=NAME, payload=payload(value + 1), points_selector=chosen(value)
    )
    service.OverwritePayload(request, CONTEXT)


def upsert(service: PointsService, value: int) -> None:
    request = wire.UpsertPoints(
        collection_name=NAME, points=[point(value + 1)], update_filter=where(value)
    )
    service.Upsert(request, CONTEXT)


def batch(service: PointsService, value: int) -> None:
    """Its second operation means what the first one wrote."""
    parts = [
        wire.PointsUpdateOperation(
            set_payload=wire.PointsUpdateOperation.SetPayload(
                payload=payload(to), points_selector=chosen(of)
            )
        )
        for of, to in ((value, value + 100), (value + 100, value + 1))
    ]
    service.UpdateBatch(wire.UpdateBatchPoints(collection_name=NAME, operations=parts), CONTEXT)


def delete(service: PointsService, value: int) -> None:
    """The point goes, and comes back with the next value."""
    service.Delete(wire.DeletePoints(collection_name=NAME, points=chosen(value)), CONTEXT)
    request = wire.UpsertPoints(
        collection_name=NAME, points=[point(value + 1)], update_mode=wire.UpdateMode.InsertOnly
    )
    service.Upsert(request, CONTEXT)


@pytest.mark.parametrize("move", [set_payload, overwrite_payload, upsert, batch, delete])
def test_conditional_writes_are_repeated_though_the_indexes_are_ahead(
    move: Callable[[PointsService, int], None], tmp_path: Path
) -> None:
    live, torn = tmp_path / "live", tmp_path / "torn"
    database = Database(live)
    service = PointsService(database)
    params = wire.VectorParams(size=2, distance=wire.Cosine)
    database.create(
        wire.CreateCollection(
            collection_name=NAME, vectors_config=wire.VectorsConfig(params=params)
        )
    )
    service.CreateFieldIndex(
        wire.CreateFieldIndexCollection(
            collection_name=NAME, field_name=AT, field_type=wire.FieldTypeInteger
        ),
        CONTEXT,
    )
    service.Upsert(wire.UpsertPoints(collection_name=NAME, points=[point(0)]), CONTEXT)
    database.flush()
    shutil.copytree(live, torn)
    for value in range(5):
        move(service, value)
    _replace(live, torn, "wal")
    database.flush()
    _replace(live, torn, "payload_index")
    database.close()

    back = Database(torn)
    engine = back.collection(NAME).engine
    (found,) = engine.retrieve([1], with_payload=True, with_vector=False)
    assert found.payload == {AT: 5}
    counts = [_count(engine, value) for value in range(7)]
    assert counts == [0, 0, 0, 0, 0, 1, 0]
    back.close()


def _replace(source: Path, target: Path, part: str) -> None:
    """Let the target's folders of that name be as the source's are now."""
    found = list(source.rglob(part))
    assert found
    for folder in found:
        copy = target / folder.relative_to(source)
        shutil.rmtree(copy)
        shutil.copytree(folder, copy)


def _count(engine: edge.EdgeShard, value: int) -> int:
    equal = edge.FieldCondition(AT, match=edge.MatchValue(value))
    return engine.count(edge.CountRequest(filter=edge.Filter(must=[equal])))
