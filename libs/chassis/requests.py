"""Requests from bytes. What cannot be read is the caller's to mend, so the field is named."""

from collections.abc import Callable
from typing import TypeVar

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.empty_pb2 import Empty
from google.protobuf.message import DecodeError, Message
from google.protobuf.unknown_fields import UnknownFieldSet

from chassis.errors import InvalidInput

M = TypeVar("M", bound=Message)


def read(parse: Callable[[bytes], M], raw: bytes) -> M:
    """The message in `raw`, by a generated class's FromString. Raises InvalidInput.

    Left to gRPC, bytes that are no message end as UNKNOWN with the parser's own words.
    """
    try:
        return parse(raw)
    except DecodeError as error:
        kind = getattr(parse, "__self__", Empty)
        field = _bad_text(kind.DESCRIPTOR, raw)
        message = "the text is not valid UTF-8" if field else "the request is no valid message"
        raise InvalidInput(message, field=field) from error


def _bad_text(kind: Descriptor, raw: bytes) -> str:
    """Path of the first text that is not UTF-8; empty when that is not what is wrong."""
    try:
        values = UnknownFieldSet(Empty.FromString(raw))  # knows no field, hence checks no text
    except DecodeError:
        return ""
    for value in (values[position] for position in range(len(values))):
        field = kind.fields_by_number.get(value.field_number)
        if field is not None and isinstance(value.data, bytes):
            path = _bad_path(field, value.data)
            if path:
                return path
    return ""


def _bad_path(field: FieldDescriptor, data: bytes) -> str:
    if field.message_type is not None:
        inner = _bad_text(field.message_type, data)
        return f"{field.name}.{inner}" if inner else ""
    if field.type != FieldDescriptor.TYPE_STRING:
        return ""
    try:
        data.decode()
    except UnicodeDecodeError:
        return field.name
    return ""
