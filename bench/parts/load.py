"""More questions than the allowance holds, asked of replicas over gRPC."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from chassis import channels
from chassis.errors import SluiceError
from chassis.identity import AccessLevel, Caller, Minter, development_key
from local.ports import LOOPBACK
from sluice.answer.v1 import outcome_pb2
from sluice.assemble.v1 import assemble_pb2
from sluice.evidence.v1 import evidence_pb2
from sluice.generate.v1 import generate_pb2
from sluice.generate.v1.generate_pb2_grpc import GenerateServiceStub

if TYPE_CHECKING:  # the asynchronous face exists in the type stubs alone
    from sluice.generate.v1.generate_pb2_grpc import GenerateServiceAsyncStub

SERVICE = "sluice.generate.v1.GenerateService"
CALLER = Caller("bench", "bench", AccessLevel.TEAM)
SHORTEST, LONGEST = 100, 400  # tokens of a message
WORKERS = 48
PAUSE = 0.3  # seconds before a worker that was refused asks again
LIMIT = 20.0  # seconds that one call may take
FRESH = 30.0  # seconds that one token is used


@dataclass
class Load:
    """Counts what came of the calls, by mode and reason."""

    ports: Sequence[int]
    draw: random.Random
    outcomes: Counter[str] = field(default_factory=Counter)
    _token: str = ""
    _minted: float = float("-inf")

    async def run(self, stop: asyncio.Event) -> None:
        async with AsyncExitStack() as opened:
            replicas = []
            for port in self.ports:
                target = f"dns:///{LOOPBACK}:{port}"
                channel = channels.connect(target, service=SERVICE, idempotent=False)
                replicas.append(GenerateServiceStub(await opened.enter_async_context(channel)))
            await asyncio.gather(*(self._work(replicas, stop) for _ in range(WORKERS)))

    async def _work(
        self, replicas: Sequence["GenerateServiceAsyncStub"], stop: asyncio.Event
    ) -> None:
        while not stop.is_set():
            outcome = await self._ask(self.draw.choice(replicas))
            self.outcomes[outcome] += 1
            if not outcome.startswith("generated"):
                await asyncio.sleep(self.draw.uniform(0.5, 1.5) * PAUSE)

    async def _ask(self, replica: "GenerateServiceAsyncStub") -> str:
        request = _request(self.draw.randrange(SHORTEST, LONGEST + 1))
        try:
            response = await channels.call(
                replica.Generate, request, stage="generate", token=self._fresh(), limit=LIMIT
            )
        except SluiceError as failure:
            return f"error {failure.reason}"
        mode = response.outcome.WhichOneof("mode") or "none"
        if mode != "unavailable":
            return mode
        reason = outcome_pb2.UnavailableReason.Name(response.outcome.unavailable.reason)
        return f"{mode} {reason.removeprefix('UNAVAILABLE_REASON_')}"

    def _fresh(self) -> str:
        if time.monotonic() - self._minted > FRESH:
            self._token = Minter(development_key()).mint(CALLER, "generate")
            self._minted = time.monotonic()
        return self._token


def _request(tokens: int) -> generate_pb2.GenerateRequest:
    content = f"When do writes stop? tokens={tokens}"
    return generate_pb2.GenerateRequest(
        question="When do writes stop?",
        messages=[assemble_pb2.Message(role=assemble_pb2.ROLE_USER, content=content)],
        sources=[
            evidence_pb2.Source(
                label="S1",
                document_id="runbook",
                title="Disks",
                included_text="Writes stop at 90 per cent.",
                blocks=[evidence_pb2.Block(text="Writes stop at 90 per cent.")],
                score=0.9,
            )
        ],
        input_tokens=tokens,
        score_space=evidence_pb2.SCORE_SPACE_COSINE,
    )
