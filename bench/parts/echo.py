"""A bare gRPC server that says what it was told to keep: what one hop costs by itself."""

import argparse

import grpc
import uvloop

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


async def serve(port: int) -> None:
    echo = Echo()
    methods: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {
        "Keep": grpc.unary_unary_rpc_method_handler(echo.keep),
        "Say": grpc.unary_unary_rpc_method_handler(echo.say),
    }
    server = grpc.aio.server()
    server.add_registered_method_handlers(SERVICE, methods)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, methods),))
    server.add_insecure_port(f"{LOOPBACK}:{port}")
    await server.start()
    await server.wait_for_termination()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    uvloop.run(serve(parser.parse_args().port))


if __name__ == "__main__":
    main()
