# ruff: noqa: N802 -- methods bear the names of Qdrant's RPCs
# ruff: noqa: ARG002 -- gRPC hands every method a context
"""Qdrant's `Collections` service."""

from collections.abc import Iterable
from typing import Any

import grpc

from corpus.qdrant import wire
from local.qdrant_node.database import Collection, Database
from local.qdrant_node.errors import Unserved

Context = grpc.aio.ServicerContext[Any, Any]

_UPDATABLE = frozenset({"collection_name", "metadata", "timeout"})


class CollectionsService(wire.CollectionsServicer):
    def __init__(self, database: Database) -> None:
        self._database = database

    def Get(
        self, request: wire.GetCollectionInfoRequest, context: Context
    ) -> wire.GetCollectionInfoResponse:
        collection = self._database.collection(request.collection_name)
        return wire.GetCollectionInfoResponse(result=_collection_info(collection))

    def List(
        self, request: wire.ListCollectionsRequest, context: Context
    ) -> wire.ListCollectionsResponse:
        names = self._database.names()
        return wire.ListCollectionsResponse(
            collections=[wire.CollectionDescription(name=name) for name in names]
        )

    def CollectionExists(
        self, request: wire.CollectionExistsRequest, context: Context
    ) -> wire.CollectionExistsResponse:
        exists = self._database.exists(request.collection_name)
        return wire.CollectionExistsResponse(result=wire.CollectionExists(exists=exists))

    def Create(
        self, request: wire.CreateCollection, context: Context
    ) -> wire.CollectionOperationResponse:
        self._database.create(request)
        return wire.CollectionOperationResponse(result=True)

    def Update(
        self, request: wire.UpdateCollection, context: Context
    ) -> wire.CollectionOperationResponse:
        for field, _ in request.ListFields():
            if field.name not in _UPDATABLE:
                raise Unserved(f"update of a collection's {field.name}")
        self._database.add_metadata(request.collection_name, request)
        return wire.CollectionOperationResponse(result=True)

    def Delete(
        self, request: wire.DeleteCollection, context: Context
    ) -> wire.CollectionOperationResponse:
        dropped = self._database.drop(request.collection_name)
        return wire.CollectionOperationResponse(result=dropped)

    def UpdateAliases(
        self, request: wire.ChangeAliases, context: Context
    ) -> wire.CollectionOperationResponse:
        self._database.change_aliases(request.actions)
        return wire.CollectionOperationResponse(result=True)

    def ListAliases(
        self, request: wire.ListAliasesRequest, context: Context
    ) -> wire.ListAliasesResponse:
        return _aliases(self._database.aliases().items())

    def ListCollectionAliases(
        self, request: wire.ListCollectionAliasesRequest, context: Context
    ) -> wire.ListAliasesResponse:
        name = self._database.resolve(request.collection_name)
        return _aliases(pair for pair in self._database.aliases().items() if pair[1] == name)


def _collection_info(collection: Collection) -> wire.CollectionInfo:
    info = collection.engine.info()
    return wire.CollectionInfo(
        status=wire.Green,
        optimizer_status=wire.OptimizerStatus(ok=True),
        segments_count=info.segments_count,
        points_count=info.points_count,
        indexed_vectors_count=info.indexed_vectors_count,
        config=collection.entry.config,
        payload_schema={
            field: _payload_index(index, info.payload_schema[field].points)
            for field, index in collection.entry.indexes.items()
            if field in info.payload_schema
        },
    )


def _payload_index(index: wire.PayloadSchemaInfo, points: int) -> wire.PayloadSchemaInfo:
    return wire.PayloadSchemaInfo(
        data_type=index.data_type,
        params=index.params if index.HasField("params") else None,
        points=points,
    )


def _aliases(pairs: Iterable[tuple[str, str]]) -> wire.ListAliasesResponse:
    return wire.ListAliasesResponse(
        aliases=[
            wire.AliasDescription(alias_name=alias, collection_name=name)
            for alias, name in sorted(pairs)
        ]
    )
