"""A process with two RPCs: one answers, waits or fails, as the question says; one counts."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial

from chassis import deadlines, identity
from chassis.errors import Exhausted
from chassis.health import Dependency
from chassis.serve import Service, run, serve
from chassis.settings import StageSettings, load
from sluice.ingest.v1 import ingest_pb2, ingest_pb2_grpc
from sluice.retrieve.v1 import retrieve_pb2, retrieve_pb2_grpc


class Settings(StageSettings):
    port: int = 0


class Retrieve(retrieve_pb2_grpc.RetrieveServiceServicer):
    async def Retrieve(  # noqa: N802 - the contract's name
        self, request: retrieve_pb2.RetrieveRequest, context: object
    ) -> retrieve_pb2.RetrieveResponse:
        match request.question:
            case "wait":
                print("began", flush=True)  # noqa: T201
                await asyncio.sleep(request.top_k)
            case "hang":
                await asyncio.Event().wait()
            case "bug":
                raise RuntimeError("driver text with a secret")
            case "full":
                raise Exhausted("no room", reason="ROOM", retry_after=1.25)
        caller = identity.current()
        left = deadlines.within(1_000).remaining()
        return retrieve_pb2.RetrieveResponse(
            embedding_profile=f"{caller.tenant}/{caller.level.label}", epoch=round(left * 1_000)
        )


class Ingest(ingest_pb2_grpc.IngestServiceServicer):
    async def PutDocument(  # noqa: N802 - the contract's name
        self, request_iterator: AsyncIterator[ingest_pb2.PutDocumentRequest], context: object
    ) -> ingest_pb2.PutDocumentResponse:
        return ingest_pb2.PutDocumentResponse(chunks=len([part async for part in request_iterator]))


async def process(settings: Settings) -> None:
    verifier = identity.Verifier(identity.verifying_key(settings.internal_verify_key), "retrieve")

    async def verify(token: str) -> identity.Caller:
        return verifier.verify(token)

    async def check() -> None:
        return None

    add = partial(
        retrieve_pb2_grpc.add_RetrieveServiceServicer_to_server,
        Retrieve(),  # type: ignore[abstract] # one of its calls is enough
    )
    add_ingest = partial(
        ingest_pb2_grpc.add_IngestServiceServicer_to_server,
        Ingest(),  # type: ignore[abstract] # one of its calls is enough
    )
    await serve(
        settings.port,
        settings,
        services=[
            Service("sluice.retrieve.v1.RetrieveService", add),
            Service("sluice.ingest.v1.IngestService", add_ingest),
        ],
        verify=verify,
        limit=30,
        dependencies=[Dependency("nothing", check)],
    )


def main() -> None:
    settings = load(Settings)
    run("retrieve", settings, partial(process, settings))


if __name__ == "__main__":
    main()
