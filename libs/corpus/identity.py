"""Ids that any machine and language computes alike."""

import hashlib
import uuid


def uuid_of(*parts: str) -> str:
    """UUID of a list of texts.

    The first 16 bytes of the SHA-256 over each text's UTF-8 bytes, each preceded by their number
    as 8 bytes big-endian, with version 8 and the RFC 9562 variant set. No two lists encode alike.
    """
    data = bytearray(_digest(parts)[:16])
    data[6] = 0x80 | data[6] & 0x0F
    data[8] = 0x80 | data[8] & 0x3F
    return str(uuid.UUID(bytes=bytes(data)))


def hash_of(*parts: str) -> str:
    """Lower-case hexadecimal SHA-256 over the same encoding."""
    return _digest(parts).hex()


def _digest(parts: tuple[str, ...]) -> bytes:
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode()
        digest.update(len(data).to_bytes(8, "big"))
        digest.update(data)
    return digest.digest()
