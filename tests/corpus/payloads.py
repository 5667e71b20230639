"""Payloads as Python's values, by Qdrant's own conversion and not by ours."""

from collections.abc import Mapping
from typing import Any

from qdrant_client import grpc
from qdrant_client.conversions.conversion import json_to_value

from corpus.fields import Fields
from corpus.points import StoredPassage, from_fields


def fields(identity: str, payload: Mapping[str, Any] | None) -> Fields:
    """The payload as it comes from Qdrant."""
    values = {key: json_to_value(value) for key, value in (payload or {}).items()}
    sent = grpc.RetrievedPoint(payload=values).SerializeToString()
    return Fields(identity, grpc.RetrievedPoint.FromString(sent).payload)


def passage_in(identity: str, payload: Mapping[str, Any] | None) -> StoredPassage:
    """The passage in a payload. Raises DataViolation as `from_fields` does."""
    return from_fields(fields(identity, payload))
