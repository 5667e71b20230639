"""The RPC face of the retrieve stage."""

import grpc
import structlog

from chassis import identity
from services.retrieve import wire
from services.retrieve.search import Result, Search
from services.retrieve.standing import standing
from services.retrieve.wire import Defaults
from sluice.retrieve.v1 import retrieve_pb2 as pb
from sluice.retrieve.v1.retrieve_pb2_grpc import RetrieveServiceServicer

log = structlog.get_logger()


class RetrieveServicer(RetrieveServiceServicer):
    def __init__(self, search: Search, defaults: Defaults) -> None:
        self._search = search
        self._defaults = defaults

    async def Retrieve(  # noqa: N802 - the contract's name
        self,
        request: pb.RetrieveRequest,
        context: grpc.aio.ServicerContext[pb.RetrieveRequest, pb.RetrieveResponse],  # noqa: ARG002
    ) -> pb.RetrieveResponse:
        wanted = wire.wanted(request, self._defaults)
        result = await self._search.run(wanted, identity.current())
        _tell(result)
        return wire.response(result, self._search.profile.id)

    async def CheckPassages(  # noqa: N802 - the contract's name
        self,
        request: pb.CheckPassagesRequest,
        context: grpc.aio.ServicerContext[  # noqa: ARG002
            pb.CheckPassagesRequest, pb.CheckPassagesResponse
        ],
    ) -> pb.CheckPassagesResponse:
        evidence = wire.evidence_of(request)
        found = await standing(self._search.index, evidence, identity.current())
        log.info("checked", epoch=found.epoch, gone=len(found.gone))
        return wire.standing(found)


def _tell(result: Result) -> None:
    log.info(
        "retrieved",
        epoch=result.epoch,
        space=result.space.name,
        candidates=result.candidates,
        returned=len(result.passages),
        embedding_seconds=round(result.embedding_seconds, 4),
        search_seconds=round(result.search_seconds, 4),
    )
