"""The RPC face of the assemble stage."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

import grpc
import structlog

from services.assemble import wire
from services.assemble.admit import Count
from services.assemble.assembly import Task, assemble
from services.assemble.budget import Budget
from services.assemble.instructions import Instructions, choose
from sluice.assemble.v1 import assemble_pb2 as pb
from sluice.assemble.v1.assemble_pb2_grpc import AssembleServiceServicer

LITTLE = 64 * 1024  # bytes

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Standard:
    """What every request shares: the default budget, the instructions, the tokenizer."""

    budget: Budget
    max_sources: int
    instructions: Mapping[str, Instructions]
    tokenizer: str
    count: Count


class AssembleServicer(AssembleServiceServicer):
    def __init__(self, standard: Standard) -> None:
        self._standard = standard

    async def Assemble(  # noqa: N802 - the contract's name
        self,
        request: pb.AssembleRequest,
        context: grpc.aio.ServicerContext[pb.AssembleRequest, pb.AssembleResponse],  # noqa: ARG002
    ) -> pb.AssembleResponse:
        # Little takes a few milliseconds at most; much would hold up health checks.
        if request.ByteSize() <= LITTLE:
            return _assemble(request, self._standard)
        return await asyncio.to_thread(_assemble, request, self._standard)


def _assemble(request: pb.AssembleRequest, standard: Standard) -> pb.AssembleResponse:
    task = Task(
        question=wire.question(request),
        candidates=wire.candidates(request),
        instructions=choose(standard.instructions, request.locale),
        budget=wire.budget(request, standard.budget),
        selection=wire.selection(request),
        injection=wire.injection(request),
        max_sources=standard.max_sources,
    )
    assembly = assemble(task, standard.count)
    log.info("assembled", tokens=assembly.tokens, **assembly.tally())
    response = wire.response(request, assembly)
    response.allowance = task.budget.allowance
    response.instructions_version = task.instructions.version
    response.tokenizer = standard.tokenizer
    return response
