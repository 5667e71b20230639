"""A collection's vectors and settings: from the request to what is kept, and to the engine."""

from __future__ import annotations  # the stubs' aliases do not exist at run time

import math
from collections.abc import Mapping
from dataclasses import dataclass

import qdrant_edge as edge

from corpus.qdrant import wire
from local.qdrant_node.errors import BadInput, Unserved

_NAME_LIMIT = 255
_NAME_REFUSED = frozenset('<>:"/\\|?*\0\x1f')
_SIZE_LIMIT = 65_536

# `indexed_only` searches leave out segments above this size (kB) that have no graph, and here none
# has: building one freezes the process for seconds, and a scan of 20,000 vectors takes 2 ms.
_INDEXING_THRESHOLD = 10**9

# The engine's threads share a collection's segments. Here it is one: each thread more would only
# wake for nothing, at a third of a small search's cost and twice the time of a large one.
_SEARCH_THREADS = 1

_KEPT_PARAMS = frozenset({"vectors_config", "sparse_vectors_config", "payload", "id_tracker"})
_KEPT_CONFIG = {
    "hnsw_config": "hnsw_config",
    "wal_config": "wal_config",
    "optimizers_config": "optimizer_config",
    "quantization_config": "quantization_config",
    "strict_mode_config": "strict_mode_config",
}
_SERVED_STRICTNESS = frozenset(
    {"enabled", "unindexed_filtering_retrieve", "unindexed_filtering_update"}
)


@dataclass(frozen=True, slots=True)
class VectorSchema:
    """The dense vectors' sizes by name (the unnamed one is ""), and the sparse vectors' names."""

    sizes: Mapping[str, int]
    sparse: frozenset[str]

    def require_known(self, name: str) -> None:
        if name not in self.sizes and name not in self.sparse:
            raise BadInput(f"Not existing vector name error: {name}")

    def require_dense(self, name: str, values: list[float]) -> None:
        self.require_known(name)
        if name in self.sparse:
            raise BadInput(f"Wrong usage of sparse vectors: {name} takes indices and values")
        if len(values) != self.sizes[name]:
            raise BadInput(
                f"Vector dimension error: expected dim: {self.sizes[name]}, got {len(values)}"
            )
        _require_finite(name, values)

    def require_sparse(self, name: str, indices: list[int], values: list[float]) -> None:
        self.require_known(name)
        if name not in self.sparse:
            raise BadInput(f"Wrong usage of sparse vectors: {name} is a dense vector")
        if len(indices) != len(values):
            raise BadInput(f"Sparse vector {name}: must be the same length as indices")
        if len(set(indices)) != len(indices):
            raise BadInput(f"Sparse vector {name}: indices must be unique")
        _require_finite(name, values)


def _require_finite(name: str, values: list[float]) -> None:
    # Single-precision values cannot overflow the sum, so it is finite exactly when all of them are.
    if not math.isfinite(sum(values)):
        raise BadInput(f"Vector {name} holds a value that is not finite")


def vector_schema(config: wire.CollectionConfig) -> VectorSchema:
    return VectorSchema(
        sizes={name: params.size for name, params in _dense(config).items()},
        sparse=frozenset(config.params.sparse_vectors_config.map),
    )


def collection_config(request: wire.CreateCollection) -> wire.CollectionConfig:
    """What is kept of a request: the defaults of this node, and the request's values over them.

    There is one shard and one copy whatever the request says, and that is what is reported.
    """
    _require_name(request.collection_name)
    if request.sharding_method == wire.Custom:
        raise Unserved("custom sharding")
    given = {field.name for field, _ in request.ListFields()}
    config = _default_config()
    for name in given & _KEPT_PARAMS:
        getattr(config.params, name).CopyFrom(getattr(request, name))
    for name in given & _KEPT_CONFIG.keys():
        getattr(config, _KEPT_CONFIG[name]).MergeFrom(getattr(request, name))
    if request.HasField("on_disk_payload"):
        config.params.on_disk_payload = request.on_disk_payload
    merge_metadata(config, request.metadata)
    _require_served(config)
    return config


def merge_metadata(config: wire.CollectionConfig, metadata: Mapping[str, wire.Value]) -> None:
    for key, value in metadata.items():
        config.metadata[key].CopyFrom(value)


def engine_config(config: wire.CollectionConfig) -> edge.EdgeConfig:
    return edge.EdgeConfig(
        vectors={name: _engine_dense(params) for name, params in _dense(config).items()},
        sparse_vectors={
            name: _engine_sparse(params)
            for name, params in config.params.sparse_vectors_config.map.items()
        },
        optimizers=edge.EdgeOptimizersConfig(indexing_threshold=_INDEXING_THRESHOLD),
        max_search_threads=_SEARCH_THREADS,
    )


def _default_config() -> wire.CollectionConfig:
    return wire.CollectionConfig(
        params=wire.CollectionParams(
            shard_number=1, replication_factor=1, write_consistency_factor=1, on_disk_payload=True
        ),
        hnsw_config=wire.HnswConfigDiff(m=16, ef_construct=100, full_scan_threshold=10_000),
        optimizer_config=wire.OptimizersConfigDiff(
            deleted_threshold=0.2,
            vacuum_min_vector_number=1_000,
            default_segment_number=1,
            indexing_threshold=0,  # Qdrant's word for "builds no graph"
            flush_interval_sec=5,
        ),
        wal_config=wire.WalConfigDiff(wal_capacity_mb=32, wal_segments_ahead=0),
    )


def _require_name(name: str) -> None:
    if not 1 <= len(name) <= _NAME_LIMIT:
        raise BadInput(f"collection_name must have 1 to {_NAME_LIMIT} characters")
    if refused := sorted(_NAME_REFUSED.intersection(name)):
        raise BadInput(f"collection_name cannot contain {refused[0]!r}")


def _require_served(config: wire.CollectionConfig) -> None:
    dense, sparse = _dense(config), config.params.sparse_vectors_config.map
    if not dense and not sparse:
        raise Unserved("collection without vectors")
    if both := dense.keys() & sparse.keys():
        raise BadInput(f"Vector {min(both)} is configured both dense and sparse")
    for name, params in dense.items():
        _require_served_vector(name, params)
    for option, _ in config.strict_mode_config.ListFields():
        if option.name not in _SERVED_STRICTNESS:
            raise Unserved(f"strict mode option {option.name}")


def _require_served_vector(name: str, params: wire.VectorParams) -> None:
    if params.HasField("multivector_config"):
        raise Unserved("multivectors")
    if not 1 <= params.size <= _SIZE_LIMIT:
        raise BadInput(f"vector {name!r}: size must be from 1 to {_SIZE_LIMIT}")
    if params.distance not in _DISTANCES:
        raise BadInput(f"vector {name!r}: unknown distance")


def _dense(config: wire.CollectionConfig) -> dict[str, wire.VectorParams]:
    vectors = config.params.vectors_config
    if vectors.WhichOneof("config") == "params":
        return {"": vectors.params}
    return dict(vectors.params_map.map)


_DISTANCES = {
    wire.Cosine: edge.Distance.Cosine,
    wire.Euclid: edge.Distance.Euclid,
    wire.Dot: edge.Distance.Dot,
    wire.Manhattan: edge.Distance.Manhattan,
}

_DATATYPES = {
    wire.Default: None,
    wire.Float32: edge.VectorStorageDatatype.Float32,
    wire.Float16: edge.VectorStorageDatatype.Float16,
    wire.Uint8: edge.VectorStorageDatatype.Uint8,
}


def _engine_dense(params: wire.VectorParams) -> edge.EdgeVectorParams:
    return edge.EdgeVectorParams(
        size=params.size,
        distance=_DISTANCES[params.distance],
        datatype=_datatype(params.datatype),
    )


def _engine_sparse(params: wire.SparseVectorParams) -> edge.EdgeSparseVectorParams:
    return edge.EdgeSparseVectorParams(
        modifier=edge.Modifier.Idf if params.modifier == wire.Idf else None,
        datatype=_datatype(params.index.datatype),
    )


def _datatype(datatype: wire.Datatype.ValueType) -> edge.VectorStorageDatatype | None:
    if datatype not in _DATATYPES:
        raise Unserved(f"vector datatype {wire.Datatype.Name(datatype)}")
    return _DATATYPES[datatype]
