# ruff: noqa: N802 -- methods bear the names of Qdrant's RPCs
# ruff: noqa: ARG001, ARG002 -- gRPC hands every method a context
"""Qdrant's `Points` service."""

from collections.abc import Callable
from typing import Any

import grpc
import qdrant_edge as edge
from google.protobuf.message import Message

from corpus.qdrant import wire
from local.qdrant_node.database import Collection, Database
from local.qdrant_node.errors import Unserved
from local.qdrant_node.filters import optional_filter
from local.qdrant_node.indexes import index_declaration
from local.qdrant_node.points import (
    engine_id,
    engine_ids,
    payload_selector,
    retrieved_point,
    scored_point,
    vector_selector,
    wire_id,
)
from local.qdrant_node.queries import Conversion, limit, order_by
from local.qdrant_node.strictness import require_indexed
from local.qdrant_node.updates import batched, engine_update

Context = grpc.aio.ServicerContext[Any, Any]


def _updating(kind: str) -> Callable[..., wire.PointsOperationResponse]:
    """The method of an RPC that is one write operation."""

    def update(
        service: "PointsService", request: Message, context: Context
    ) -> wire.PointsOperationResponse:
        collection = service.written(request)
        collection.shard.write(engine_update(kind, request, collection.schema))
        return wire.PointsOperationResponse(result=_completed())

    return update


class PointsService(wire.PointsServicer):
    def __init__(self, database: Database) -> None:
        self._database = database

    Upsert = _updating("upsert")
    Delete = _updating("delete_points")
    UpdateVectors = _updating("update_vectors")
    DeleteVectors = _updating("delete_vectors")
    SetPayload = _updating("set_payload")
    OverwritePayload = _updating("overwrite_payload")
    DeletePayload = _updating("delete_payload")
    ClearPayload = _updating("clear_payload")

    def UpdateBatch(
        self, request: wire.UpdateBatchPoints, context: Context
    ) -> wire.UpdateBatchResponse:
        collection = self.written(request)
        operations = [batched(part, collection.schema) for part in request.operations]
        for operation in operations:
            collection.shard.write(operation)
        return wire.UpdateBatchResponse(result=[_completed() for _ in operations])

    def CreateFieldIndex(
        self, request: wire.CreateFieldIndexCollection, context: Context
    ) -> wire.PointsOperationResponse:
        index = index_declaration(request)
        self._database.create_index(request.collection_name, request.field_name, index)
        return wire.PointsOperationResponse(result=_completed())

    def DeleteFieldIndex(
        self, request: wire.DeleteFieldIndexCollection, context: Context
    ) -> wire.PointsOperationResponse:
        self._database.drop_index(request.collection_name, request.field_name)
        return wire.PointsOperationResponse(result=_completed())

    def Get(self, request: wire.GetPoints, context: Context) -> wire.GetResponse:
        records = self._read(request).engine.retrieve(
            engine_ids(request.ids),
            with_payload=payload_selector(request.with_payload, otherwise=True),
            with_vector=vector_selector(request.with_vectors),
        )
        return wire.GetResponse(result=[retrieved_point(record) for record in records])

    def Scroll(self, request: wire.ScrollPoints, context: Context) -> wire.ScrollResponse:
        scroll = edge.ScrollRequest(
            offset=engine_id(request.offset) if request.HasField("offset") else None,
            limit=limit(request),
            filter=optional_filter(request),
            with_payload=payload_selector(request.with_payload, otherwise=True),
            with_vector=vector_selector(request.with_vectors),
            order_by=order_by(request.order_by) if request.HasField("order_by") else None,
        )
        records, following = self._read(request).engine.scroll(scroll)
        return wire.ScrollResponse(
            result=[retrieved_point(record) for record in records],
            next_page_offset=None if following is None else wire_id(following),
        )

    def Count(self, request: wire.CountPoints, context: Context) -> wire.CountResponse:
        count = edge.CountRequest(filter=optional_filter(request))
        return wire.CountResponse(
            result=wire.CountResult(count=self._read(request).engine.count(count))
        )

    def Facet(self, request: wire.FacetCounts, context: Context) -> wire.FacetResponse:
        facet = edge.FacetRequest(
            request.key, limit=limit(request), exact=True, filter=optional_filter(request)
        )
        hits = self._read(request).engine.facet(facet).hits
        return wire.FacetResponse(hits=[_facet_hit(hit) for hit in hits])

    def Query(self, request: wire.QueryPoints, context: Context) -> wire.QueryResponse:
        collection = self._read(request)
        conversion = Conversion(collection, self._database.collection)
        hits = collection.engine.query(conversion.request(request))
        return wire.QueryResponse(result=_scored(request, hits))

    def QueryBatch(
        self, request: wire.QueryBatchPoints, context: Context
    ) -> wire.QueryBatchResponse:
        collection = self._read(request)
        conversion = Conversion(collection, self._database.collection)
        queries = [conversion.request(query) for query in request.query_points]
        results = collection.engine.query_batch(edge.QueryBatchRequest(queries))
        pairs = zip(request.query_points, results, strict=True)
        return wire.QueryBatchResponse(
            result=[wire.BatchResult(result=_scored(query, hits)) for query, hits in pairs]
        )

    def _read(self, request: Message) -> Collection:
        collection = self._collection(request)
        require_indexed(request, collection.entry, "unindexed_filtering_retrieve")
        return collection

    def written(self, request: Message) -> Collection:
        collection = self._collection(request)
        require_indexed(request, collection.entry, "unindexed_filtering_update")
        return collection

    def _collection(self, request: Any) -> Collection:  # noqa: ANN401 -- any request on a collection
        for part in (request, *getattr(request, "query_points", ())):
            _require_no_shard_key(part)
        return self._database.collection(request.collection_name)


def _scored(request: wire.QueryPoints, hits: list[edge.ScoredPoint]) -> list[wire.ScoredPoint]:
    with_vectors = bool(vector_selector(request.with_vectors))
    return [scored_point(hit, with_vectors=with_vectors) for hit in hits]


def _facet_hit(hit: edge.FacetHit) -> wire.FacetHit:
    match hit.value:
        case bool():
            value = wire.FacetValue(bool_value=hit.value)
        case int():
            value = wire.FacetValue(integer_value=hit.value)
        case _:
            value = wire.FacetValue(string_value=str(hit.value))
    return wire.FacetHit(value=value, count=hit.count)


def _completed() -> wire.UpdateResult:
    return wire.UpdateResult(status=wire.Completed)


def _require_no_shard_key(request: Message) -> None:
    has_selector = "shard_key_selector" in request.DESCRIPTOR.fields_by_name
    if has_selector and request.HasField("shard_key_selector"):
        raise Unserved("shard keys")
