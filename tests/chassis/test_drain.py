"""A process that ends, and the calls that were on their way to it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import grpc

from chassis import channels, serve
from chassis.edge import Edge
from chassis.identity import AccessLevel, Caller
from sluice.retrieve.v1 import retrieve_pb2, retrieve_pb2_grpc

SERVICE = "sluice.retrieve.v1.RetrieveService"
CALLER = Caller("ana", "acme", AccessLevel.TEAM)
ON_ITS_WAY = 0.1  # seconds between the arrival of a call and its beginning
TAKES = 2 * serve.LAST_WORDS
GRACE = 10.0
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"


class Late(grpc.aio.ServerInterceptor):
    """What a busy process does: a call that has arrived waits for its turn."""

    def __init__(self) -> None:
        self.arrived = asyncio.Event()

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable["Handler | None"]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> "Handler | None":
        self.arrived.set()
        await asyncio.sleep(ON_ITS_WAY)
        return await continuation(handler_call_details)


class Slow(retrieve_pb2_grpc.RetrieveServiceServicer):
    async def Retrieve(  # noqa: N802 - the contract's name
        self, request: retrieve_pb2.RetrieveRequest, context: object
    ) -> retrieve_pb2.RetrieveResponse:
        await asyncio.sleep(TAKES)
        return retrieve_pb2.RetrieveResponse(embedding_profile="whole")


async def believed(_: str) -> Caller:
    return CALLER


async def test_a_call_that_arrived_before_the_drain_and_begins_in_it_is_finished() -> None:
    late, edge = Late(), Edge(believed, limit=30)
    server = grpc.aio.server(interceptors=[late, edge])
    slow = Slow()  # type: ignore[abstract] # one of its calls is enough
    retrieve_pb2_grpc.add_RetrieveServiceServicer_to_server(slow, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    target = f"dns:///127.0.0.1:{port}"
    async with channels.connect(target, service=SERVICE, idempotent=False) as channel:
        stub = retrieve_pb2_grpc.RetrieveServiceStub(channel)
        request = retrieve_pb2.RetrieveRequest(question="who")
        calling = asyncio.create_task(
            channels.call(stub.Retrieve, request, stage="retrieve", token="any", limit=GRACE)
        )
        await asyncio.wait_for(late.arrived.wait(), GRACE)
        await serve._finish(server, edge, GRACE)
        assert (await calling).embedding_profile == "whole"
