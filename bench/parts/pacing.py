"""The stages that a gateway calls, in one process, of a few lines: text comes at a fixed pace."""

import argparse
import asyncio
import time
from collections.abc import AsyncIterator

import grpc
import uvloop
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1.health import aio as health

from local.ports import LOOPBACK
from sluice.answer.v1 import outcome_pb2
from sluice.assemble.v1 import assemble_pb2, assemble_pb2_grpc
from sluice.evidence.v1 import evidence_pb2
from sluice.generate.v1 import generate_pb2, generate_pb2_grpc
from sluice.retrieve.v1 import retrieve_pb2, retrieve_pb2_grpc

PASSAGE = evidence_pb2.Passage(
    point_id="00000000-0000-0000-0000-000000000001",
    document_id="tanks.md",
    blocks=[evidence_pb2.Block(text="The level is measured every minute.")],
    score=0.9,
)
SOURCE = evidence_pb2.Source(
    label="S1", document_id="tanks.md", included_text="Every minute.", passages=[PASSAGE]
)
EXTRACTIVE = outcome_pb2.Outcome(
    extractive=outcome_pb2.Extractive(reason=outcome_pb2.EXTRACTIVE_REASON_NONE)
)
WORD = "measured every minute, and kept for a year; " * 4
DELTA = generate_pb2.GenerateStreamResponse(delta=WORD)


class Retrieve(retrieve_pb2_grpc.RetrieveServiceServicer):
    async def Retrieve(self, request: object, context: object) -> retrieve_pb2.RetrieveResponse:  # noqa: N802, ARG002 - the contract's
        return retrieve_pb2.RetrieveResponse(passages=[PASSAGE], epoch=1)

    async def CheckPassages(  # noqa: N802 - the contract's
        self,
        request: object,  # noqa: ARG002
        context: object,  # noqa: ARG002
    ) -> retrieve_pb2.CheckPassagesResponse:
        return retrieve_pb2.CheckPassagesResponse(epoch=1)


class Assemble(assemble_pb2_grpc.AssembleServiceServicer):
    async def Assemble(self, request: object, context: object) -> assemble_pb2.AssembleResponse:  # noqa: N802, ARG002 - the contract's
        return assemble_pb2.AssembleResponse(sources=[SOURCE], input_tokens=1)


class Generate(generate_pb2_grpc.GenerateServiceServicer):
    """`pause` is seconds between two of so many `deltas`."""

    def __init__(self, pause: float, deltas: int) -> None:
        self._pause = pause
        self._deltas = deltas

    async def GenerateStream(  # noqa: N802 - the contract's
        self,
        request: object,  # noqa: ARG002
        context: object,  # noqa: ARG002
    ) -> AsyncIterator[generate_pb2.GenerateStreamResponse]:
        began = time.monotonic()
        for number in range(1, self._deltas + 1):
            await asyncio.sleep(began + number * self._pause - time.monotonic())
            yield DELTA
        text = WORD * self._deltas
        reply = generate_pb2.GenerateResponse(outcome=EXTRACTIVE, text=text)
        yield generate_pb2.GenerateStreamResponse(final=reply)


async def serve(port: int, pause: float, deltas: int) -> None:
    server = grpc.aio.server()
    retrieve_pb2_grpc.add_RetrieveServiceServicer_to_server(Retrieve(), server)
    assemble_pb2_grpc.add_AssembleServiceServicer_to_server(Assemble(), server)
    generate = Generate(pause, deltas)  # type: ignore[abstract] # one of its calls is enough
    generate_pb2_grpc.add_GenerateServiceServicer_to_server(generate, server)
    servicer = health.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(servicer, server)
    await servicer.set("readiness", health_pb2.HealthCheckResponse.SERVING)
    server.add_insecure_port(f"{LOOPBACK}:{port}")
    await server.start()
    await server.wait_for_termination()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--pause", type=float, required=True, help="seconds between two deltas")
    parser.add_argument("--deltas", type=int, required=True, help="of an answer")
    given = parser.parse_args()
    uvloop.run(serve(given.port, given.pause, given.deltas))


if __name__ == "__main__":
    main()
