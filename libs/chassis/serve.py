"""The life of a process: bind, become ready, serve, drain on SIGTERM, end with 0."""

import asyncio
import gc
import signal
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

import grpc
import structlog
import uvloop
from google.protobuf import descriptor_pool
from grpc_health.v1 import health_pb2_grpc
from grpc_reflection.v1alpha import reflection
from opentelemetry.instrumentation.grpc import aio_server_interceptor

from chassis import channels, logs, telemetry
from chassis.certificates import Certificates
from chassis.edge import Edge, Verify
from chassis.health import Dependency, Health
from chassis.settings import ProcessSettings

EXIT_CANNOT_LISTEN = 3
LAST_WORDS = 0.2  # seconds for the last responses to leave; health watchers would stay for ever
# Seconds for calls that were made before their callers heard that this process ends.
LAST_CALLS = 0.5

Close = Callable[[], Awaitable[object]]
Alongside = Callable[[asyncio.Event], Coroutine[Any, Any, None]]

_SERVER_OPTIONS: list[tuple[str, int]] = [
    ("grpc.so_reuseport", 0),  # else a second server silently shares the port
    ("grpc.max_receive_message_length", channels.MESSAGE_BYTES),
    ("grpc.max_send_message_length", channels.MESSAGE_BYTES),
    # Clients look for new replicas only when a connection ends; the grace outlasts any answer.
    ("grpc.max_connection_age_ms", 120_000),
    ("grpc.max_connection_age_grace_ms", 660_000),
    ("grpc.keepalive_time_ms", 60_000),
    # Clients ask every 30 seconds of a long call; by default the third time would end it.
    ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
]

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Service:
    """One gRPC service of the process: its full name and how to add it to a server."""

    name: str
    add: Callable[[grpc.aio.Server], None]


async def serve(  # noqa: PLR0913 - one argument a part of the process
    port: int,
    settings: ProcessSettings,
    *,
    services: Sequence[Service],
    verify: Verify,
    limit: float,
    dependencies: Sequence[Dependency] = (),
    alongside: Sequence[Alongside] = (),
    close: Sequence[Close] = (),
) -> None:
    """Serve until SIGTERM or SIGINT.

    `limit` caps every call's time in seconds. `alongside` run next to the server and end soon
    after their event is set. `close` is called in order once no call is left.
    """
    stop = _stop_event()
    health = Health(dependencies)
    edge = Edge(verify, limit)
    server = _server(services, health, edge)
    _listen(server, settings.host, port, settings.certificates)
    probed = [_probed(health, settings)] if settings.health_port else []
    await health.begin()
    for each in (server, *probed):
        await each.start()
    _spare_collector()
    log.info("listening", port=port)
    tasks = [asyncio.create_task(_until_stopped(part, stop)) for part in (health.watch, *alongside)]
    await stop.wait()
    log.info("draining")
    await health.drain()
    await _finish(server, edge, settings.grace_seconds)
    for each in probed:
        await each.stop(LAST_WORDS)
    failed = await asyncio.gather(*tasks, return_exceptions=True)
    for release in close:
        await release()
    log.info("stopped")
    _raise_first(failed)


def run(
    process: str, settings: ProcessSettings, main: Callable[[], Coroutine[Any, Any, None]]
) -> None:
    """Set up logs and telemetry, run `main` on one event loop, flush what is left to export."""
    logs.start(process, settings.log_level)
    exporting = _telemetry(process, settings)
    try:
        uvloop.run(main())
    finally:
        exporting.stop()


def _telemetry(process: str, settings: ProcessSettings) -> telemetry.Telemetry:
    try:
        return telemetry.start(process, settings)
    except OSError:
        raise _cannot_listen(settings.host, settings.metrics_port) from None


def _stop_event() -> asyncio.Event:
    stop = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, stop.set)
    return stop


def _server(services: Sequence[Service], health: Health, edge: Edge) -> grpc.aio.Server:
    server = grpc.aio.server(interceptors=[_spans(services), edge], options=_SERVER_OPTIONS)
    for service in services:
        service.add(server)
    health_pb2_grpc.add_HealthServicer_to_server(health.servicer, server)
    names = [service.name for service in services]
    reflection.enable_server_reflection(
        [*names, "grpc.health.v1.Health", reflection.SERVICE_NAME], server
    )
    return server


def _spans(services: Sequence[Service]) -> grpc.aio.ServerInterceptor:
    """A span for every call with one reply; those of response streams are the edge's own."""
    pool = descriptor_pool.Default()
    streams = {
        f"/{service.name}/{method.name}"
        for service in services
        for method in pool.FindServiceByName(service.name).methods
        if method.server_streaming
    }

    def has_one_reply(call: grpc.HandlerCallDetails) -> bool:
        # Health and reflection are streams too, and noise in a trace.
        return call.method not in streams and not call.method.startswith("/grpc.")

    interceptor: grpc.aio.ServerInterceptor = aio_server_interceptor(filter_=has_one_reply)  # type: ignore[no-untyped-call] # untyped
    return interceptor


def _spare_collector() -> None:
    """Keep what lives as long as the process from Python's collector.

    Each walk over it holds up every call: 90 ms in a gateway, 20 times a minute under load.
    """
    gc.collect()
    gc.freeze()


def _probed(health: Health, settings: ProcessSettings) -> grpc.aio.Server:
    """Health alone, for who asks without a certificate, as Kubernetes' probes do."""
    server = grpc.aio.server(options=_SERVER_OPTIONS)
    health_pb2_grpc.add_HealthServicer_to_server(health.servicer, server)
    _listen(server, settings.host, settings.health_port, None)
    return server


def _listen(
    server: grpc.aio.Server, host: str, port: int, certificates: Certificates | None
) -> None:
    try:
        if certificates is None:
            server.add_insecure_port(f"{host}:{port}")
        else:
            server.add_secure_port(f"{host}:{port}", _credentials(certificates))
    except RuntimeError:
        # gRPC's own text speaks of address families; what helps is the port.
        raise _cannot_listen(host, port) from None


def _credentials(certificates: Certificates) -> grpc.ServerCredentials:
    """Each connection begins with the files as they are then, and with the other side's own."""

    def now() -> grpc.ServerCertificateConfiguration:
        held = certificates.current()
        return grpc.ssl_server_certificate_configuration(
            [(held.key, held.certificate)], held.authority
        )

    return grpc.dynamic_ssl_server_credentials(now(), now, require_client_authentication=True)


def _cannot_listen(host: str, port: int) -> SystemExit:
    log.error("cannot_listen", host=host, port=port, mend="free the port or set another one")
    return SystemExit(EXIT_CANNOT_LISTEN)


async def _finish(server: grpc.aio.Server, edge: Edge, grace: float) -> None:
    """Refuse new calls, let running ones end within `grace` seconds, cancel the rest."""
    stopping = asyncio.create_task(server.stop(grace))
    quiet = asyncio.create_task(edge.wait_quiet(LAST_CALLS))
    await asyncio.wait((stopping, quiet), return_when=asyncio.FIRST_COMPLETED)
    for task in (stopping, quiet):
        task.cancel()
    await asyncio.gather(stopping, quiet, return_exceptions=True)
    await server.stop(LAST_WORDS)


async def _until_stopped(part: Alongside, stop: asyncio.Event) -> None:
    try:
        await part(stop)
    finally:
        stop.set()


def _raise_first(results: Sequence[object]) -> None:
    for result in results:
        if isinstance(result, BaseException):
            raise result
