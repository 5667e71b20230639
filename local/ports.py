"""Which port each process has, and what to do about one that is taken."""

import contextlib
import random
import socket
from collections.abc import Mapping

from local.failures import Refused

LOOPBACK = "127.0.0.1"

# Below the ports of outgoing connections on Linux, and above the well-known ones.
QUIET = range(20_000, 32_000)
TRIES = 50

DEFAULTS: Mapping[str, int] = {
    "redis": 6379,
    "jobs": 6380,
    "qdrant": 6334,
    "models": 8090,
    "llm": 8091,
    "ingest": 50051,
    "retrieve": 50052,
    "assemble": 50053,
    "generate": 50054,
    "worker": 50055,
    "gateway": 8080,
    "gateway_grpc": 50050,
}
# Only some profiles have it.
OPTIONAL = frozenset({"llm"})


def setting(name: str) -> str:
    """The variable that sets a process's port."""
    return f"SLUICE_{name.upper()}_PORT"


def told(settings: Mapping[str, str]) -> dict[str, int]:
    """Ports as set, else the defaults. Raises Refused naming the variable."""
    return {name: _port(name, settings) for name in DEFAULTS}


def chosen(settings: Mapping[str, str]) -> dict[str, int]:
    """As told, but a Redis moves to a free port when its default is taken and nobody set one."""
    ports = told(settings)
    for name in ("redis", "jobs"):
        if setting(name) not in settings and not is_free(ports[name]):
            ports[name] = free(1)[0]
    return ports


def _port(name: str, settings: Mapping[str, str]) -> int:
    text = settings.get(setting(name), str(DEFAULTS[name]))
    if not text.isascii() or not text.isdigit() or not 0 < int(text) <= 65_535:  # noqa: PLR2004
        raise Refused(
            f"{setting(name)}: not a port number; for example {setting(name)}={DEFAULTS[name]}"
        )
    return int(text)


def free(count: int) -> list[int]:
    """Ports that nobody listens on now. All are held until the last is found: no two alike."""
    with contextlib.ExitStack() as held:
        taken = [held.enter_context(_some_server()) for _ in range(count)]
        return [one.getsockname()[1] for one in taken]


def _some_server() -> socket.socket:
    """On a port that the system hands to no outgoing connection before its process listens."""
    for port in random.sample(QUIET, TRIES):
        with contextlib.suppress(OSError):
            return socket.create_server((LOOPBACK, port))
    return socket.create_server((LOOPBACK, 0))


def all_free() -> dict[str, int]:
    """A free port for every process, for suites beside each other."""
    return dict(zip(DEFAULTS, free(len(DEFAULTS)), strict=True))


def is_free(port: int) -> bool:
    """Whether a server could listen on the loopback port now."""
    try:
        socket.create_server((LOOPBACK, port)).close()
    except OSError:
        return False
    return True


def check(ports: Mapping[str, int]) -> None:
    """Raises Refused naming each port that is taken or used twice, and its variable."""
    problems = []
    owner: dict[int, str] = {}
    for name, port in ports.items():
        if port in owner:
            problems.append(f"port {port} is set for {owner[port]} and {name}: set {setting(name)}")
        elif not is_free(port):
            problems.append(
                f"port {port} for {name} is in use: free it or set another one,"
                f" for example {setting(name)}={free(1)[0]}"
            )
        owner.setdefault(port, name)
    if problems:
        raise Refused("\n".join(problems))
