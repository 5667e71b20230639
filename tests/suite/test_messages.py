"""Random messages, right and mutated, to every service of a running suite over gRPC."""

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random, SystemRandom
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor import MethodDescriptor

from chassis.identity import AccessLevel, Caller, Minter, development_key
from gateway.identity import development_token
from sluice.answer.v1 import answer_pb2
from sluice.assemble.v1 import assemble_pb2
from sluice.generate.v1 import generate_pb2
from sluice.ingest.v1 import ingest_pb2
from sluice.retrieve.v1 import retrieve_pb2
from tests.suite.conftest import Running
from tests.suite.messages import drawn

SOAK = 10_000
FEW = 600
AT_ONCE = 8
LIMIT = 30.0  # seconds within which every call has its end
CONTRACTS = {
    "gateway_grpc": answer_pb2,
    "ingest": ingest_pb2,
    "retrieve": retrieve_pb2,
    "assemble": assemble_pb2,
    "generate": generate_pb2,
}
# What a call may end with, whatever was sent.
ENDS = {
    *("OK", "INVALID_ARGUMENT", "UNAUTHENTICATED", "PERMISSION_DENIED"),
    "NOT_FOUND",
    "FAILED_PRECONDITION",  # to switch where nothing is reindexed
    "ABORTED",  # an idempotency key that stands for another question
}
CALLERS = [
    Caller("ana", "demo", AccessLevel.TEAM, frozenset({"sre"})),
    # What comes in is a tenant's of its own.
    Caller("ed", "fuzz", AccessLevel.RESTRICTED, roles=frozenset({"ingest", "operator", "drafts"})),
]


@dataclass(frozen=True, slots=True)
class Rpc:
    """A method of a process; `part` is also the audience of the tokens it takes."""

    part: str
    method: MethodDescriptor

    @property
    def path(self) -> str:
        return f"/{self.method.containing_service.full_name}/{self.method.name}"

    def tokens(self) -> list[str]:
        """Good ones twice as often as others: of another audience, none at all, nonsense."""
        if self.part == "gateway_grpc":
            good = [_outside(caller) for caller in CALLERS]
            return [*good, *good, Minter(development_key()).mint(CALLERS[0], "gateway"), "", "a.b"]
        inside = Minter(development_key()).mint
        good = [inside(caller, self.part) for caller in CALLERS]
        return [*good, *good, inside(CALLERS[0], "elsewhere"), _outside(CALLERS[1]), ""]


def _outside(caller: Caller) -> str:
    return development_token(caller.subject, caller.tenant, caller.level, roles=caller.roles)


def rpcs() -> Iterator[Rpc]:
    for part, contract in CONTRACTS.items():
        for service in contract.DESCRIPTOR.services_by_name.values():
            for method in service.methods:
                yield Rpc(part, method)


async def end_of(channel: Any, rpc: Rpc, sent: Sequence[bytes], token: str) -> str:  # noqa: ANN401 - calls of raw bytes have no type
    """The name of the status that the call ended with, and what was said of it."""
    metadata = [("authorization", f"Bearer {token}")] if token else []
    try:
        async with asyncio.timeout(LIMIT + 1):
            if rpc.method.client_streaming:
                await channel.stream_unary(rpc.path)(iter(sent), timeout=LIMIT, metadata=metadata)
            elif rpc.method.server_streaming:
                call = channel.unary_stream(rpc.path)(sent[0], timeout=LIMIT, metadata=metadata)
                async for _ in call:
                    pass
            else:
                await channel.unary_unary(rpc.path)(sent[0], timeout=LIMIT, metadata=metadata)
    except grpc.aio.AioRpcError as failure:
        return f"{failure.code().name}: {failure.details()}"
    return "OK"


async def tried(channel: grpc.aio.Channel, rpc: Rpc, number: int, draw: Random) -> Counter[str]:
    """How so many calls of one method ended, some of them at once."""
    most = 4 if rpc.method.client_streaming else 1
    tokens, left = rpc.tokens(), iter(range(number))

    async def work() -> Counter[str]:
        ends: Counter[str] = Counter()
        for _ in left:
            sent = drawn(rpc.method.input_type, draw, most)
            name, _, said = (await end_of(channel, rpc, sent, draw.choice(tokens))).partition(":")
            assert name in ENDS, (rpc.path, name, said, sent)
            assert "Traceback" not in said
            ends[name] += 1
        return ends

    found = await asyncio.gather(*(work() for _ in range(AT_ONCE)))
    return sum(found, Counter())


async def all_tried(suite: Running, number: int, seed: int) -> dict[str, Counter[str]]:
    """About so many calls, divided among all methods of all services."""
    found = list(rpcs())
    ends = {}
    for rpc in found:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{suite.ports[rpc.part]}") as channel:
            ends[rpc.path] = await tried(channel, rpc, -(-number // len(found)), Random(seed))
    return ends


async def test_no_message_breaks_a_service(examples: Running) -> None:
    ends = await all_tried(examples, FEW, seed=7)
    assert sum(ends.values(), Counter()).total() >= FEW
    assert all(found["INVALID_ARGUMENT"] and found["UNAUTHENTICATED"] for found in ends.values())
    assert examples.ready()


@pytest.mark.soak
async def test_ten_thousand_messages_break_no_service(examples: Running) -> None:
    seed = SystemRandom().getrandbits(32)
    ends = await all_tried(examples, SOAK, seed)
    assert sum(ends.values(), Counter()).total() >= SOAK, seed
    assert examples.ready(), seed
