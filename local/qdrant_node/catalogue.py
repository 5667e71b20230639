"""Which collections, indexes and aliases exist, as one small file that is replaced whole."""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from google.protobuf.json_format import MessageToDict, ParseDict

from corpus.qdrant import wire
from local.qdrant_node.errors import BadInput, Exists, Missing, StartError

_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Entry:
    """One collection: its folder's name, its configuration and its payload indexes by field."""

    folder: str
    config: wire.CollectionConfig
    indexes: Mapping[str, wire.PayloadSchemaInfo] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Catalogue:
    entries: Mapping[str, Entry] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)

    def resolve(self, name: str) -> str:
        """The collection that a name or an alias stands for."""
        collection = self.aliases.get(name, name)
        if collection not in self.entries:
            raise Missing(f"Collection `{name}` doesn't exist!")
        return collection

    def require_free(self, name: str) -> None:
        if name in self.entries:
            raise Exists(f"Collection `{name}` already exists!")
        if name in self.aliases:
            raise BadInput(
                f"Can't create collection with name {name}. Alias with the same name already exists"
            )

    def with_entry(self, name: str, entry: Entry) -> "Catalogue":
        return replace(self, entries={**self.entries, name: entry})

    def without_entry(self, name: str) -> "Catalogue":
        return Catalogue(
            entries={key: entry for key, entry in self.entries.items() if key != name},
            aliases={key: target for key, target in self.aliases.items() if target != name},
        )

    def with_alias_actions(self, actions: Iterable[wire.AliasOperations]) -> "Catalogue":
        """The catalogue after all actions; a failing one leaves this catalogue as it was."""
        aliases = dict(self.aliases)
        for action in actions:
            self._apply(aliases, action)
        return replace(self, aliases=aliases)

    def _apply(self, aliases: dict[str, str], action: wire.AliasOperations) -> None:
        match action.WhichOneof("action"):
            case "create_alias":
                self._create_alias(aliases, action.create_alias)
            case "rename_alias":
                self._rename_alias(aliases, action.rename_alias)
            case "delete_alias":
                aliases.pop(action.delete_alias.alias_name, None)
            case _:
                raise BadInput("Malformed alias operation: no action is set")

    def _create_alias(self, aliases: dict[str, str], action: wire.CreateAlias) -> None:
        self._require_alias_name(action.alias_name)
        if action.collection_name not in self.entries:
            raise Missing(f"Collection `{action.collection_name}` doesn't exist!")
        aliases[action.alias_name] = action.collection_name

    def _rename_alias(self, aliases: dict[str, str], action: wire.RenameAlias) -> None:
        self._require_alias_name(action.new_alias_name)
        if action.old_alias_name not in aliases:
            raise Missing(f"Alias {action.old_alias_name} does not exists!")
        aliases[action.new_alias_name] = aliases.pop(action.old_alias_name)

    def _require_alias_name(self, name: str) -> None:
        if not name:
            raise BadInput("alias_name must not be empty")
        if name in self.entries:
            raise Exists(f"Collection `{name}` already exists!")


def read(path: Path) -> Catalogue:
    """The catalogue in a file. Raises StartError when the file is not a catalogue."""
    try:
        document = json.loads(path.read_bytes())
        if document["format"] != _FORMAT:
            raise StartError(f"{path}: format {document['format']} is not {_FORMAT}")
        entries = {name: _entry(fields) for name, fields in document["collections"].items()}
        return Catalogue(entries=entries, aliases=document["aliases"])
    except (ValueError, KeyError, TypeError, AttributeError) as failure:
        raise StartError(f"{path}: not a catalogue of collections ({failure})") from failure


def write(path: Path, catalogue: Catalogue) -> None:
    """Replace the file so that after a crash it holds the old catalogue or the new one."""
    document = {
        "format": _FORMAT,
        "collections": {name: _fields(entry) for name, entry in catalogue.entries.items()},
        "aliases": dict(catalogue.aliases),
    }
    temporary = path.with_suffix(".new")
    with temporary.open("w", encoding="utf-8") as file:
        json.dump(document, file, ensure_ascii=False, indent=1)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make renames and new names in a folder survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _fields(entry: Entry) -> dict[str, Any]:
    return {
        "folder": entry.folder,
        "config": MessageToDict(entry.config),
        "indexes": {name: MessageToDict(index) for name, index in entry.indexes.items()},
    }


def _entry(fields: dict[str, Any]) -> Entry:
    return Entry(
        folder=fields["folder"],
        config=ParseDict(fields["config"], wire.CollectionConfig()),
        indexes={
            name: ParseDict(index, wire.PayloadSchemaInfo())
            for name, index in fields["indexes"].items()
        },
    )
