"""A channel that shows the certificate as it is on disk when a call begins.

gRPC's own channel keeps its credentials for good. Here a renewed certificate makes another one for
the calls that begin; those under way end on theirs, which is closed behind the last.
"""

from __future__ import annotations  # gRPC's classes are generic in their stubs only

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import Any, Self

import grpc

from chassis.certificates import Certificates, Credentials

Open = Callable[[grpc.ChannelCredentials], grpc.aio.Channel]


@dataclass(slots=True, eq=False)
class _Generation:
    """A channel with one state of the files. `calls` are under way."""

    credentials: Credentials
    channel: grpc.aio.Channel
    methods: dict[tuple[str, str], Any] = field(default_factory=dict)
    calls: int = 0


class RenewedChannel(grpc.aio.Channel):
    """`opened` makes a channel with the credentials given."""

    def __init__(self, certificates: Certificates, opened: Open) -> None:
        self._certificates = certificates
        self._opened = opened
        self._now = self._generation(certificates.current())
        self._before: set[_Generation] = set()
        self._closing: set[asyncio.Task[None]] = set()

    def _generation(self, told: Credentials) -> _Generation:
        credentials = grpc.ssl_channel_credentials(told.authority, told.key, told.certificate)
        return _Generation(told, self._opened(credentials))

    def _current(self) -> _Generation:
        told = self._certificates.current()
        before = self._now
        if told != before.credentials:
            self._now = self._generation(told)
            self._before.add(before)
            self._close_if_idle(before)
        return self._now

    def _close_if_idle(self, generation: _Generation) -> None:
        if generation in self._before and not generation.calls:
            self._before.discard(generation)
            closing = asyncio.create_task(generation.channel.close())
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)

    def _begin(self, kind: str, method: str, how: dict[str, Any], *args: Any, **told: Any) -> Any:  # noqa: ANN401 - whatever a stub says
        generation = self._current()
        if (kind, method) not in generation.methods:
            make = getattr(generation.channel, kind)
            generation.methods[kind, method] = make(method, **how)
        call = generation.methods[kind, method](*args, **told)
        generation.calls += 1
        call.add_done_callback(partial(self._ended, generation))
        return call

    def _ended(self, generation: _Generation, _: object) -> None:
        generation.calls -= 1
        self._close_if_idle(generation)

    def unary_unary(self, method: str, *args: Any, **how: Any) -> Any:  # noqa: ANN401 - as above
        return self._method("unary_unary", method, args, how)

    def unary_stream(self, method: str, *args: Any, **how: Any) -> Any:  # noqa: ANN401 - as above
        return self._method("unary_stream", method, args, how)

    def stream_unary(self, method: str, *args: Any, **how: Any) -> Any:  # noqa: ANN401 - as above
        return self._method("stream_unary", method, args, how)

    def stream_stream(self, method: str, *args: Any, **how: Any) -> Any:  # noqa: ANN401 - as above
        return self._method("stream_stream", method, args, how)

    def _method(self, kind: str, method: str, args: tuple[Any, ...], how: dict[str, Any]) -> Any:  # noqa: ANN401 - as above
        names = ("request_serializer", "response_deserializer")
        return partial(self._begin, kind, method, {**dict(zip(names, args, strict=False)), **how})

    def get_state(self, try_to_connect: bool = False) -> grpc.ChannelConnectivity:  # noqa: FBT001, FBT002 - gRPC's signature
        return self._current().channel.get_state(try_to_connect)

    async def wait_for_state_change(self, last_observed_state: grpc.ChannelConnectivity) -> None:
        await self._current().channel.wait_for_state_change(last_observed_state)

    async def channel_ready(self) -> None:
        await self._current().channel.channel_ready()

    async def close(self, grace: float | None = None) -> None:
        before, self._before = self._before, set()
        for generation in (*before, self._now):
            await generation.channel.close(grace)
        await asyncio.gather(*self._closing)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()
