"""Qdrant's own gRPC messages, and a connection that speaks them.

The package `qdrant_client` also imports its whole REST client, which costs every start 2 s of
processor time and 40 MB. Its messages need nothing of that: they are loaded under an empty package
in its place, whose name is free again afterwards for whoever wants the client. What is ours takes
them from here, so that no order of imports can bring in the rest.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec, module_from_spec
from typing import Any, Final

import grpc

__all__ = ["CALL_SECONDS", "Qdrant", "wire"]

CALL_SECONDS: Final = 5.0  # of a call that names no other deadline


@contextmanager
def _hollow(name: str) -> Iterator[None]:
    """Lets parts of a package be imported without what it imports itself."""
    spec = find_spec(name)
    if spec is None or name in sys.modules:
        yield
        return
    sys.modules[name] = module_from_spec(spec)
    try:
        yield
    finally:
        del sys.modules[name]


with _hollow("qdrant_client"):
    from qdrant_client import grpc as wire


class Qdrant:
    """A connection to one endpoint. `points` and `collections` are the stubs of its services.

    Calls raise what gRPC raises, which `failures.translated` makes ours.
    """

    def __init__(self, channel: grpc.aio.Channel, api_key: str = "") -> None:
        self._channel = channel
        calls = _Calls(channel, api_key)
        stubs: Any = wire  # the generated ones are untyped
        self.points = stubs.PointsStub(calls)
        self.collections = stubs.CollectionsStub(calls)

    async def close(self) -> None:
        await self._channel.close()


class _Calls:
    """What the stubs take for a channel: no call is without the key or without a deadline."""

    def __init__(self, channel: grpc.aio.Channel, api_key: str) -> None:
        self._channel = channel
        self._metadata = (("api-key", api_key),) if api_key else None

    def unary_unary(self, method: str, **how: Any) -> Any:  # noqa: ANN401 - whatever a stub says
        call = self._channel.unary_unary(method, **how)
        return partial(call, metadata=self._metadata, timeout=CALL_SECONDS)
