"""Messages made of a contract's own descriptors: right ones, and bytes that once were."""

import math
import struct
from collections.abc import Callable
from random import Random
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

DEPTH = 5
MOST = 3  # of a repeated field
PLAIN = ("a", "en", "demo", "S1", "runbooks/a.md", "When is the production deploy window?")
TEXTS = (
    *PLAIN * 5,
    *("", " ", "a\x00b", "\r\n", "\u202eabc", "\u2028", "ไม่", "😀" * 40, "[S1] [S2]"),
    *("x" * 5_000, "../" * 30),
    *("00000000-0000-0000-0000-000000000001", "# One\n\nTwo.", "<script>", "${jndi:x}", '{"a": 1}'),
)
NUMBERS = (0, 1, 2, 7, 100, 1_000, 2**31 - 1, 2**32 - 1, 2**63 - 1, 2**64 - 1)
REALS = (0.0, 0.5, 0.9, 1.0, -1.0, 1e-300, 1e300, math.nan, math.inf, -math.inf)

_REAL = {FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT}
_BITS = {
    FieldDescriptor.CPPTYPE_INT32: (31, True),
    FieldDescriptor.CPPTYPE_INT64: (63, True),
    FieldDescriptor.CPPTYPE_UINT32: (32, False),
    FieldDescriptor.CPPTYPE_UINT64: (64, False),
}


def right(kind: Descriptor, draw: Random, depth: int = DEPTH) -> Message:
    """A message that fits the contract, whether it makes sense or not."""
    message = GetMessageClass(kind)()
    fields: Any = message
    chosen = {one.full_name: draw.choice(one.fields) for one in kind.oneofs}
    for field in kind.fields:
        if field.containing_oneof and chosen[field.containing_oneof.full_name] is not field:
            continue
        if draw.random() < 0.4 or (field.message_type and not depth):
            continue
        if field.is_repeated:
            values = [_value(field, draw, depth) for _ in range(draw.randint(0, MOST))]
            getattr(fields, field.name).extend(values)
        elif field.message_type:
            getattr(fields, field.name).CopyFrom(_value(field, draw, depth))
        else:
            setattr(fields, field.name, _value(field, draw, depth))
    return message


def _value(field: FieldDescriptor, draw: Random, depth: int) -> object:
    if field.message_type:
        return right(field.message_type, draw, depth - 1)
    if field.enum_type:
        return draw.choice([*[*field.enum_type.values_by_number] * 4, 99])
    if field.cpp_type in _BITS:
        bits, signed = _BITS[field.cpp_type]
        number = draw.choice([*NUMBERS, *range(8), draw.getrandbits(bits)]) % 2**bits
        return -number if signed and draw.random() < 0.2 else number
    if field.cpp_type in _REAL:
        return _fitting(draw.choice([*REALS, *[draw.random()] * 40]), field)
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return draw.random() < 0.5
    text = draw.choice(TEXTS)
    return text.encode() if field.type == FieldDescriptor.TYPE_BYTES else text


def _fitting(value: float, field: FieldDescriptor) -> float:
    if field.cpp_type != FieldDescriptor.CPPTYPE_FLOAT or not math.isfinite(value):
        return value
    narrow: float = struct.unpack("f", struct.pack("f", max(min(value, 1e38), -1e38)))[0]
    return narrow


def _changed(raw: bytes, draw: Random) -> bytes:
    found = bytearray(raw)
    for _ in range(draw.randint(1, 4)):
        found[draw.randrange(len(found))] = draw.randrange(256)
    return bytes(found)


def _cut(raw: bytes, draw: Random) -> bytes:
    return raw[: draw.randrange(len(raw))]


def _grown(raw: bytes, draw: Random) -> bytes:
    at = draw.randrange(len(raw))
    return raw[:at] + draw.randbytes(draw.randint(1, 9)) + raw[at:]


def _any(_: bytes, draw: Random) -> bytes:
    return draw.randbytes(draw.randint(0, 200))


_MUTATIONS: tuple[Callable[[bytes, Random], bytes], ...] = (_changed, _cut, _grown, _any)


def drawn(kind: Descriptor, draw: Random, most: int) -> list[bytes]:
    """Up to so many messages for one call, of which every second time one is not as it was."""
    found = [right(kind, draw).SerializeToString() for _ in range(draw.randint(1, most))]
    if draw.random() < 0.5:
        at = draw.randrange(len(found))
        found[at] = draw.choice(_MUTATIONS)(found[at] or b"\x00", draw)
    return found
