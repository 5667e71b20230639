"""The open collections of one data folder."""

import fcntl
import os
import re
import shutil
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import qdrant_edge as edge

from corpus.qdrant import wire
from local import private
from local.qdrant_node.catalogue import Catalogue, Entry, read, sync_folder, write
from local.qdrant_node.errors import StartError
from local.qdrant_node.indexes import engine_schema
from local.qdrant_node.schema import (
    VectorSchema,
    collection_config,
    engine_config,
    merge_metadata,
    vector_schema,
)
from local.qdrant_node.shards import Shard, create_shard, load_shard

_SHARD_FOLDER = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class Collection:
    """What a request on a collection works with."""

    entry: Entry
    schema: VectorSchema
    shard: Shard

    @property
    def engine(self) -> edge.EdgeShard:
        return self.shard.engine


class Database:
    """All collections: the catalogue says which there are, the shards hold their points.

    A collection exists from the moment the catalogue names its folder until it no longer does; a
    folder that it does not name is the rest of a creation or a deletion cut short.
    """

    def __init__(self, folder: Path) -> None:
        """Open a data folder. Raises StartError when another node has it or it is damaged."""
        self._folder = folder
        self._lock = _lock(folder)
        self._catalogue_file = folder / "catalogue.json"
        self._catalogue = self._read_catalogue()
        self._collections = {
            name: _open(entry, self._shard_folder(entry.folder))
            for name, entry in self._catalogue.entries.items()
        }

    def names(self) -> list[str]:
        return sorted(self._catalogue.entries)

    def aliases(self) -> dict[str, str]:
        return dict(self._catalogue.aliases)

    def exists(self, name: str) -> bool:
        return self._catalogue.aliases.get(name, name) in self._catalogue.entries

    def resolve(self, name: str) -> str:
        return self._catalogue.resolve(name)

    def collection(self, name: str) -> Collection:
        """The collection of that name or alias. Raises Missing."""
        return self._collections[self.resolve(name)]

    def create(self, request: wire.CreateCollection) -> None:
        name = request.collection_name
        self._catalogue.require_free(name)
        entry = Entry(folder=uuid.uuid4().hex, config=collection_config(request))
        shard = create_shard(self._shard_folder(entry.folder), engine_config(entry.config))
        try:
            self._commit(self._catalogue.with_entry(name, entry))
        except OSError:
            shard.remove()
            raise
        self._collections[name] = Collection(entry, vector_schema(entry.config), shard)

    def drop(self, name: str) -> bool:
        """Remove a collection and its aliases; False when there is none of that name."""
        if name not in self._catalogue.entries:
            return False
        self._commit(self._catalogue.without_entry(name))
        self._collections.pop(name).shard.remove()
        return True

    def change_aliases(self, actions: Iterable[wire.AliasOperations]) -> None:
        self._commit(self._catalogue.with_alias_actions(actions))

    def add_metadata(self, name: str, request: wire.UpdateCollection) -> None:
        entry = self.collection(name).entry
        config = wire.CollectionConfig()
        config.CopyFrom(entry.config)
        merge_metadata(config, request.metadata)
        self._replace_entry(name, replace(entry, config=config))

    def create_index(self, name: str, field: str, index: wire.PayloadSchemaInfo) -> None:
        """Build the index, then keep it; a crash between leaves an index that opening drops."""
        present = self.collection(name).entry.indexes.get(field)
        if present == index:
            return
        if present is not None:
            self.drop_index(name, field)
        collection = self.collection(name)
        operation = edge.UpdateOperation.create_field_index(field, engine_schema(index))
        collection.shard.update(operation)
        indexes = {**collection.entry.indexes, field: index}
        self._replace_entry(name, replace(collection.entry, indexes=indexes))

    def drop_index(self, name: str, field: str) -> None:
        collection = self.collection(name)
        collection.shard.update(edge.UpdateOperation.delete_field_index(field))
        indexes = {key: kept for key, kept in collection.entry.indexes.items() if key != field}
        self._replace_entry(name, replace(collection.entry, indexes=indexes))

    def flush(self) -> None:
        for collection in self._collections.values():
            collection.shard.flush()

    def close(self) -> None:
        for collection in self._collections.values():
            collection.shard.flush()
            collection.engine.close()
        os.close(self._lock)

    def _shard_folder(self, name: str) -> Path:
        return self._folder / "collections" / name

    def _read_catalogue(self) -> Catalogue:
        if not self._catalogue_file.exists():
            write(self._catalogue_file, Catalogue())
            sync_folder(self._folder.parent)
        catalogue = read(self._catalogue_file)
        self._remove_leftovers({entry.folder for entry in catalogue.entries.values()})
        return catalogue

    def _remove_leftovers(self, named: set[str]) -> None:
        for folder in self._folder.glob("collections/*"):
            if folder.name not in named and _SHARD_FOLDER.fullmatch(folder.name):
                shutil.rmtree(folder)

    def _commit(self, catalogue: Catalogue) -> None:
        write(self._catalogue_file, catalogue)
        self._catalogue = catalogue

    def _replace_entry(self, name: str, entry: Entry) -> None:
        resolved = self.resolve(name)
        self._commit(self._catalogue.with_entry(resolved, entry))
        self._collections[resolved] = replace(self._collections[resolved], entry=entry)


def _lock(folder: Path) -> int:
    """Hold the folder until the process ends, however it ends."""
    try:
        private.folder(folder)
        descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as failure:
        raise StartError(f"SLUICE_QDRANT_DATA={folder}: {failure.strerror}") from failure
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as failure:
        os.close(descriptor)
        raise StartError(f"data folder {folder} is in use by another Qdrant node") from failure
    return descriptor


def _open(entry: Entry, folder: Path) -> Collection:
    shard = load_shard(folder, engine_config(entry.config))
    built = set(shard.engine.info().payload_schema)
    for field in built - entry.indexes.keys():
        shard.update(edge.UpdateOperation.delete_field_index(field))
    for field in entry.indexes.keys() - built:
        schema = engine_schema(entry.indexes[field])
        shard.update(edge.UpdateOperation.create_field_index(field, schema))
    return Collection(entry, vector_schema(entry.config), shard)
