"""A whole pipeline before the scripted provider, and every event of it in order."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace

from capacity import Limits, SharedBucket
from chassis.identity import AccessLevel
from providers.chat import ChatClient
from providers.endpoint import ChatOptions, Endpoint, Price
from services.generate.audience import Event
from services.generate.budget import Budget
from services.generate.candidate import Candidate
from services.generate.delivery import deliver
from services.generate.evidence import Scores
from services.generate.extract import Calibration
from services.generate.extraction import Extraction
from services.generate.pipeline import Memory, Pipeline, Policy
from services.generate.qualification import Qualification
from services.generate.retry import Pauses
from services.generate.task import Message, Role, Task
from tests.generate.sources import prose, source
from tests.scripted_provider.pool import SLOW
from tests.scripted_provider.server import Exchange, Reply, ScriptedProvider

OUTPUT = 50
INPUT = 100
MODEL = "scripted-model-2026"
SOURCES = (
    source("S1", prose("The deploy window is Monday to Thursday, 09:30 to 15:30 harbour time.")),
    source("S2", prose("Production deploys are never allowed on Fridays.")),
)
MESSAGES = (Message(Role.SYSTEM, "Only the evidence."), Message(Role.USER, "When?"))
TASK = Task("demo", "When is the deploy window?", MESSAGES, SOURCES, Scores.COSINE, INPUT, "en-1")
TEXT = "The deploy window is Monday to Thursday. [S1] Deploys are never allowed on Fridays [S2]."
FIRST = "The deploy window is Monday to Thursday. [S1]"
EXTRACTION = Extraction(Calibration(0.8, 0.9, 0.5))
QUALIFIED = Qualification(
    "gold-1", MODEL, frozenset({"en-1"}), frozenset(AccessLevel), is_review=False
)


def reply(text: str = TEXT, status: str = "answered", sources: Sequence[str] = ("S1", "S2")) -> str:
    return json.dumps({"status": status, "answer": text, "source_ids": sources})


def policy(attempts: int = 3, **changed: object) -> Policy:
    """Without pauses that a test would wait for."""
    plain = Policy(
        Budget(attempts), limit=30, floor=0.5, on_invalid="fail", pauses=Pauses(first=0.001)
    )
    return replace(plain, **changed)  # type: ignore[arg-type] # only ever fields


@dataclass
class Desk:
    """Candidates of one provider and one pool, and what was told of the pipelines they are in."""

    provider: ScriptedProvider
    bucket: SharedBucket
    held: AsyncExitStack
    events: list[str] = field(default_factory=list)

    def script(self, *replies: Reply) -> None:
        """Each arrival is an event too."""
        self.provider.script(*(self._told(each) for each in replies))

    def candidate(
        self,
        name: str = "primary",
        *,
        url: str = "",
        pool: str = "answers",
        bucket: SharedBucket | None = None,
        seconds: float = 5,
        has_schema: bool = False,
        price: Price | None = None,
        qualification: Qualification | None = None,
        limits: Limits = SLOW,
    ) -> Candidate:
        endpoint = Endpoint(
            id=name,
            base_url=url or self.provider.base_url,
            model=f"model-of-{name}",
            pool=pool,
            limits=limits,
            options=ChatOptions(output_tokens=OUTPUT),
            attempt_seconds=seconds,
            key="key",
            has_schema=has_schema,
            price=price,
        )
        chat = ChatClient.of(endpoint, bucket or self.bucket)
        self.held.push_async_callback(chat.close)
        return Candidate.of(chat, endpoint, qualification)

    def pipeline(
        self,
        *candidates: Candidate,
        policy: Policy = policy(),  # noqa: B008 - it is frozen
        memory: Memory | None = None,
        extraction: Extraction | None = None,
    ) -> Pipeline:
        return Pipeline.of(
            candidates or (self.candidate(),),
            policy,
            memory=memory,
            extraction=extraction,
            tell=self.events.append,
        )

    def _told(self, inner: Reply) -> Reply:
        async def told(exchange: Exchange) -> None:
            self.events.append(f"provider:{len(self.provider.arrivals)}")
            await inner(exchange)

        return told


@asynccontextmanager
async def desk(provider: ScriptedProvider, bucket: SharedBucket) -> AsyncIterator[Desk]:
    async with AsyncExitStack() as held:
        yield Desk(provider, bucket, held)


async def streamed(pipeline: Pipeline, task: Task = TASK) -> list[Event]:
    """All events of one stream."""
    async with aclosing(deliver(pipeline, task)) as events:
        return [event async for event in events]
