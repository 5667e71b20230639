"""A payload's fields by type, from Python's values or from Qdrant's own message.

Both say the same of the same payload. A number stored as text is as wrong as a text stored as a
number; a float is no whole number, and neither is a truth value.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from qdrant_client import grpc

from chassis.errors import DataViolation


class Fields(Protocol):
    """All raise DataViolation for a field that is missing or of another type."""

    def text(self, key: str) -> str: ...

    def number(self, key: str) -> int:
        """A whole number, 0 or above."""
        ...

    def texts(self, key: str) -> tuple[str, ...]: ...

    def parts(self, key: str) -> Sequence["Fields"]:
        """A list of mappings, each with fields of its own."""
        ...

    def wrong(self, key: str) -> DataViolation:
        """What to raise for a field whose value is not one of those there may be."""
        ...


@dataclass(frozen=True, slots=True)
class PlainFields:
    """Python's values. `identity` is for the complaint."""

    identity: str
    values: Mapping[str, Any]

    def text(self, key: str) -> str:
        value = self.values.get(key)
        if not isinstance(value, str):
            raise self.wrong(key)
        return value

    def number(self, key: str) -> int:
        value = self.values.get(key)
        if type(value) is not int or value < 0:  # a bool is an int to isinstance
            raise self.wrong(key)
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        value = self.values.get(key)
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.wrong(key)
        return tuple(value)

    def parts(self, key: str) -> Sequence["PlainFields"]:
        value = self.values.get(key)
        if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
            raise self.wrong(key)
        return [PlainFields(self.identity, item) for item in value]

    def wrong(self, key: str) -> DataViolation:
        return _violation(self.identity, key)


@dataclass(frozen=True, slots=True)
class WireFields:
    """Qdrant's message as it came, in half the time that making Python's values first takes.

    Of a oneof, what is not set reads as empty or 0: only then its kind has to be asked for. A key
    that is missing reads as a value without a kind.
    """

    identity: str
    values: Mapping[str, grpc.Value]

    def text(self, key: str) -> str:
        value = self.values[key]
        found = value.string_value
        if not found and value.WhichOneof("kind") != "string_value":
            raise self.wrong(key)
        return found

    def number(self, key: str) -> int:
        value = self.values[key]
        found = value.integer_value
        if found < 0 or (not found and value.WhichOneof("kind") != "integer_value"):
            raise self.wrong(key)
        return found

    def texts(self, key: str) -> tuple[str, ...]:
        items = self._items(key)
        texts = tuple([item.string_value for item in items])
        if not all(texts) and any(item.WhichOneof("kind") != "string_value" for item in items):
            raise self.wrong(key)
        return texts

    def parts(self, key: str) -> Sequence["WireFields"]:
        found = []
        for item in self._items(key):
            if item.WhichOneof("kind") != "struct_value":
                raise self.wrong(key)
            found.append(WireFields(self.identity, item.struct_value.fields))
        return found

    def wrong(self, key: str) -> DataViolation:
        return _violation(self.identity, key)

    def _items(self, key: str) -> Sequence[grpc.Value]:
        value = self.values[key]
        if value.WhichOneof("kind") != "list_value":
            raise self.wrong(key)
        return value.list_value.values


def _violation(identity: str, key: str) -> DataViolation:
    return DataViolation(
        f"point {identity}: field {key} is missing or of the wrong type",
        reason="PAYLOAD_INVALID",
        metadata={"point_id": identity, "field": key},
    )
