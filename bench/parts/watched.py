"""When Redis granted and ended each attempt, by the clock that its scripts decided with.

MONITOR shows what scripts do: an attempt takes its place by ZADD and leaves it by ZREM, and the
state that is then SET begins with the script's own time. The line's time is later, by as much as a
crowded machine holds the server up.
"""

import ast
import re
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from bench.parts.server import Server

# +1767225600.123456 [0 lua] "ZADD" "sluice:{pool}:running" "NX" "1767225610123456" "<reservation>"
SCRIPT = re.compile(rb'"EVAL(?:SHA)?" ')
PLACE = re.compile(rb' lua\] "(ZADD|ZREM)" "sluice:\{([^}]+)\}:running".* "((?:[^"\\]|\\.)*)"')
STATE = re.compile(rb' lua\] "SET" "sluice:\{[^}]+\}:pool" "((?:[^"\\]|\\.)*)"')
BEFORE_ID = 9  # bytes of a reservation
CHUNK = 1 << 20
LIMIT = 30.0  # seconds without a word


@dataclass(slots=True)
class Seen:
    """Microseconds of Redis's clock; `ended` is None for one that never was."""

    begun: int
    ended: int | None = None


@dataclass
class Watch:
    heard: bytearray = field(default_factory=bytearray)

    def attempts(self, pool: str) -> dict[str, Seen]:
        """By reservation id. Renewals take the place again: the first time counts."""
        found: dict[str, Seen] = {}
        changed: list[tuple[bytes, str]] = []
        for line in bytes(self.heard).splitlines():
            if place := PLACE.search(line):
                if place[2].decode() == pool:
                    changed.append((place[1], _bytes(place[3])[BEFORE_ID:].decode()))
            elif state := STATE.search(line):
                (at,) = struct.unpack_from("<d", _bytes(state[1]))
                _note(found, changed, int(at))
                changed.clear()
            elif SCRIPT.search(line):
                changed.clear()
        return found


def _note(found: dict[str, Seen], changed: list[tuple[bytes, str]], at: int) -> None:
    for command, reservation in changed:
        if command == b"ZADD":
            found.setdefault(reservation, Seen(at))
        elif reservation in found and found[reservation].ended is None:
            found[reservation].ended = at


@contextmanager
def watching(server: Server) -> Iterator[Watch]:
    """Everything that the server does while the block runs, once it is left."""
    watch = Watch()
    with socket.create_connection(("127.0.0.1", server.port), LIMIT) as connection:
        connection.sendall(b"MONITOR\r\n")
        watch.heard += connection.recv(CHUNK)
        listening = threading.Thread(target=_listen, args=(connection, watch.heard))
        listening.start()
        try:
            yield watch
        finally:
            connection.shutdown(socket.SHUT_RD)
            listening.join()


def _listen(connection: socket.socket, heard: bytearray) -> None:
    while part := connection.recv(CHUNK):
        heard += part


def _bytes(shown: bytes) -> bytes:
    """MONITOR escapes bytes as Python does."""
    plain: bytes = ast.literal_eval(f'b"{shown.decode()}"')
    return plain
