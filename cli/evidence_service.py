"""Retrieve and assemble as an evaluation calls them: passages, and what generate would be given."""

from __future__ import annotations  # gRPC's classes are generic in their stubs only

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from chassis import channels
from chassis.errors import SluiceError
from chassis.identity import AccessLevel, Caller, Minter, development_key
from cli import addresses
from cli.exits import Unreachable, nobody_there
from evals.case import Case
from evals.observed import Found, Passage
from services.generate import wire
from services.generate.task import Task
from sluice.assemble.v1 import assemble_pb2, assemble_pb2_grpc
from sluice.evidence.v1 import evidence_pb2
from sluice.generate.v1 import generate_pb2
from sluice.retrieve.v1 import retrieve_pb2, retrieve_pb2_grpc

RETRIEVE = "sluice.retrieve.v1.RetrieveService"
ASSEMBLE = "sluice.assemble.v1.AssembleService"
LIMIT = 60.0

A = TypeVar("A")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Search:
    """How to search: dense, sparse or fused, and spread 0 to 1. None is the stage's default."""

    mode: str | None = None
    diversity: float | None = None

    def request(self, question: str, top_k: int) -> retrieve_pb2.RetrieveRequest:
        """`top_k` 0 is the stage's default."""
        name = f"SEARCH_MODE_{(self.mode or 'unspecified').upper()}"
        return retrieve_pb2.RetrieveRequest(
            question=question,
            top_k=top_k,
            mode=retrieve_pb2.SearchMode.Value(name),
            diversity=self.diversity,
        )


class EvidenceService:
    """Calls as the people of a gold set, with development identities of one tenant.

    Each raises SluiceErrors, Unreachable when nothing listens.
    """

    def __init__(
        self,
        retrieve: retrieve_pb2_grpc.RetrieveServiceAsyncStub,
        assemble: assemble_pb2_grpc.AssembleServiceAsyncStub,
        addresses: dict[str, str],
        tenant: str,
    ) -> None:
        self._retrieve = retrieve
        self._assemble = assemble
        self._addresses = addresses
        self._tenant = tenant

    async def find(self, case: Case, search: Search, top_k: int) -> Found:
        began = time.perf_counter()
        request = search.request(case.question, top_k)
        reply = await self._call(self._retrieve.Retrieve, request, case, "retrieve")
        return _found(reply, time.perf_counter() - began)

    async def task(self, case: Case, search: Search) -> Task:
        """What generate would be given for the question."""
        wanted = search.request(case.question, 0)
        found = await self._call(self._retrieve.Retrieve, wanted, case, "retrieve")
        assembled = await self._call(
            self._assemble.Assemble,
            assemble_pb2.AssembleRequest(
                question=case.question, candidates=found.passages, locale=case.locale
            ),
            case,
            "assemble",
        )
        given = generate_pb2.GenerateRequest(
            question=case.question,
            messages=assembled.messages,
            sources=assembled.sources,
            input_tokens=assembled.input_tokens,
            instructions_version=assembled.instructions_version,
            score_space=found.score_space,
        )
        return wire.task(given, self._tenant)

    async def _call(self, method: channels.Method[A, R], request: A, case: Case, stage: str) -> R:
        token = Minter(development_key()).mint(self._caller(case), stage)
        try:
            return await channels.call(method, request, stage=stage, token=token, limit=LIMIT)
        except SluiceError as error:
            if nobody_there(error):
                raise Unreachable(self._addresses[stage]) from error
            raise

    def _caller(self, case: Case) -> Caller:
        level, groups = AccessLevel.parse(case.asker.level), frozenset(case.asker.groups)
        return Caller("evaluation", self._tenant, level, groups)


@asynccontextmanager
async def connected(retrieve: str, assemble: str, *, tenant: str) -> AsyncIterator[EvidenceService]:
    """The two stages at host:port each."""
    to = partial(channels.connect, idempotent=False, certificates=addresses.certificates())
    async with (
        to(f"dns:///{retrieve}", service=RETRIEVE) as finding,
        to(f"dns:///{assemble}", service=ASSEMBLE) as assembling,
    ):
        yield EvidenceService(
            retrieve_pb2_grpc.RetrieveServiceStub(finding),
            assemble_pb2_grpc.AssembleServiceStub(assembling),
            {"retrieve": retrieve, "assemble": assemble},
            tenant,
        )


def _found(reply: retrieve_pb2.RetrieveResponse, seconds: float) -> Found:
    space = evidence_pb2.ScoreSpace.Name(reply.score_space).removeprefix("SCORE_SPACE_")
    return Found(
        passages=tuple(_passage(passage) for passage in reply.passages),
        score_space=space,
        epoch=reply.epoch,
        embedding_profile=reply.embedding_profile,
        chunking_version=reply.chunking_version,
        seconds=seconds,
    )


def _passage(passage: evidence_pb2.Passage) -> Passage:
    text = "\n\n".join(f"{block.context}\n{block.text}".strip("\n") for block in passage.blocks)
    return Passage(passage.document_id, passage.chunk, passage.score, text)
