"""A bare gRPC server that says what it was told to keep: what one hop costs by itself.

Beside that it serves health, as everything here does.
"""

import argparse

import grpc
import uvloop
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1.health import aio as health

from local.ports import LOOPBACK

SERVICE = "bench.Echo"


class Echo:
    """Both methods take and give plain bytes."""

    def __init__(self) -> None:
        self._kept = b""

    async def keep(self, request: bytes, _context: object) -> bytes:
        self._kept = request
        return b""

    async def say(self, _request: bytes, _context: object) -> bytes:
        return self._kept


def add(server: grpc.aio.Server) -> None:
    echo = Echo()
    methods: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {
        name: grpc.unary_unary_rpc_method_handler(behaviour, request_deserializer=bytes)
        for name, behaviour in (("Keep", echo.keep), ("Say", echo.say))
    }
    server.add_registered_method_handlers(SERVICE, methods)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, methods),))


async def serve(port: int) -> None:
    server = grpc.aio.server()
    add(server)
    servicer = health.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(servicer, server)
    await servicer.set("readiness", health_pb2.HealthCheckResponse.SERVING)
    server.add_insecure_port(f"{LOOPBACK}:{port}")
    await server.start()
    await server.wait_for_termination()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    uvloop.run(serve(parser.parse_args().port))


if __name__ == "__main__":
    main()
