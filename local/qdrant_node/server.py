# ruff: noqa: N802, ARG002 -- gRPC gives methods their names and a context
"""The server: Qdrant's services and the standard health service on one port."""

from importlib.metadata import version
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1.health import aio as health_aio

from corpus.qdrant import wire
from local.qdrant_node.boundary import Boundary
from local.qdrant_node.collections_service import CollectionsService
from local.qdrant_node.database import Database
from local.qdrant_node.errors import StartError
from local.qdrant_node.points_service import PointsService

_MESSAGE_BYTES = 64 * 1024 * 1024
_HEALTH_NAMES = ("", "liveness", "readiness")


class HealthCheckService(wire.QdrantServicer):
    def HealthCheck(
        self, request: wire.HealthCheckRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> wire.HealthCheckReply:
        return wire.HealthCheckReply(title="Qdrant Edge", version=version("qdrant-edge-py"))


def build_server(port: int) -> grpc.aio.Server:
    """A server bound to a loopback port of its own. Raises StartError when the port is taken."""
    server = grpc.aio.server(
        interceptors=[Boundary()],
        options=[
            ("grpc.max_send_message_length", _MESSAGE_BYTES),
            ("grpc.max_receive_message_length", _MESSAGE_BYTES),
            # Otherwise a second node would silently get a part of this one's connections.
            ("grpc.so_reuseport", 0),
        ],
    )
    try:
        server.add_insecure_port(f"127.0.0.1:{port}")
    except RuntimeError as failure:
        raise StartError(
            f"port {port} on 127.0.0.1 is in use or not allowed: "
            "set SLUICE_QDRANT_PORT to a free one"
        ) from failure
    return server


def add_services(server: grpc.aio.Server, database: Database) -> None:
    add: Any = wire  # the generated functions are untyped
    add.add_CollectionsServicer_to_server(CollectionsService(database), server)
    add.add_PointsServicer_to_server(PointsService(database), server)
    add.add_QdrantServicer_to_server(HealthCheckService(), server)
    add.add_SnapshotsServicer_to_server(wire.SnapshotsServicer(), server)


async def add_health(server: grpc.aio.Server) -> health_aio.HealthServicer:
    health = health_aio.HealthServicer()
    for name in _HEALTH_NAMES:
        await health.set(name, health_pb2.HealthCheckResponse.SERVING)
    health_pb2_grpc.add_HealthServicer_to_server(health, server)
    return health
