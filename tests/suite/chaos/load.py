"""Questions, documents and jobs, all at once, until they are told to stop."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
import httpx

from chassis.identity import AccessLevel
from tests.ingest.parts import RECONNECTING
from tests.suite.chaos.asking import PATIENCE, Ask, Faces, Told, answer_of, bearer, exchange
from tests.suite.chaos.documents import LEVELS, PROBE, STEADY, TENANTS, Document, Library, Reader
from tests.suite.conftest import Running

WRITERS = 2
# Seconds between what each does: an asker for each face, the writers, who queues, who looks.
ASKING, WRITING, QUEUING, LOOKING = (0.05, 0.4), (0.3, 1.0), (0.4, 1.2), (0.2, 0.6)
FRESH = 0.7  # share of questions that nobody asked before
OPEN = 12  # jobs that have not ended, at most
AGAIN = 0.1  # share of jobs that are queued twice
ENDED = {"done", "failed", "expired", "cancelled", "superseded"}
SOURCE = "chaos"


async def hand_in(
    http: httpx.AsyncClient, document: Document, version: int
) -> tuple[Told, httpx.Response | None]:
    """What came of handing in that version of a document."""
    return await exchange(
        http,
        "put",
        "PUT",
        f"/v1/documents/{document.name}",
        params={"source": SOURCE, "access_level": document.level(version).label},
        content=document.text(version),
        headers=bearer(Reader(document.tenant, AccessLevel.TEAM), "ingest"),
    )


@dataclass(slots=True)
class Asked:
    """A question, and what had been acknowledged before it was asked."""

    reader: Reader
    word: str
    since: dict[str, int]
    told: Told


@dataclass(slots=True)
class Job:
    """A question that is queued under a key. `id` is empty until it was accepted."""

    key: str
    reader: Reader
    word: str
    id: str = ""
    ended: dict[str, Any] | None = None
    problems: list[str] = field(default_factory=list)


@dataclass
class Load:
    """`questions` are answers by any face and looks at jobs, `calls` everything else."""

    running: Running
    draw: random.Random
    library: Library = field(default_factory=Library)
    questions: list[Asked] = field(default_factory=list)
    calls: list[Told] = field(default_factory=list)
    jobs: list[Job] = field(default_factory=list)
    http: httpx.AsyncClient = field(init=False)
    faces: Faces = field(init=False)
    _number: int = 0

    @asynccontextmanager
    async def connected(self) -> AsyncIterator["Load"]:
        target = f"127.0.0.1:{self.running.ports['gateway_grpc']}"
        async with (
            httpx.AsyncClient(base_url=self.running.url, timeout=PATIENCE) as self.http,
            grpc.aio.insecure_channel(target, RECONNECTING) as channel,
        ):
            self.faces = Faces(self.http, channel)
            yield self

    @asynccontextmanager
    async def going_on(self) -> AsyncIterator[None]:
        """All of it while the block runs; what has begun is ended in peace."""
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            for work, pauses in [
                *((self._asker(face), ASKING) for face in self.faces.all),
                *((self._writer(documents), WRITING) for documents in self._divided()),
                (self._queuer, QUEUING),
                (self._looker, LOOKING),
            ]:
                group.create_task(self._repeated(work, pauses, stop))
            try:
                yield
            finally:
                stop.set()

    def _divided(self) -> list[list[Document]]:
        """Each document has one writer."""
        changing = self.library.changing()
        return [changing[number::WRITERS] for number in range(WRITERS)]

    async def _repeated(
        self,
        work: Callable[[], Awaitable[object]],
        pauses: tuple[float, float],
        stop: asyncio.Event,
    ) -> None:
        while not stop.is_set():
            await work()
            await asyncio.sleep(self.draw.uniform(*pauses))

    def question(self, word: str, *, fresh: bool) -> str:
        """A fresh one was never asked before, so that no kept answer serves it."""
        self._number += 1
        ending = f", for report {self._number}" if fresh else ""
        return f"At how many bar does the {word} valve close{ending}?"

    def _asker(self, face: Ask) -> Callable[[], Awaitable[object]]:
        async def ask() -> None:
            fresh = self.draw.random() < FRESH
            await self.ask(face, self._reader(), self.draw.choice([*LEVELS]), fresh=fresh)

        return ask

    def _reader(self) -> Reader:
        return Reader(self.draw.choice(TENANTS), self.draw.choice([*AccessLevel]))

    async def ask(self, face: Ask, reader: Reader, word: str, *, fresh: bool = True) -> Told:
        since = self.library.accepted(reader.tenant)
        told = await face(reader, self.question(word, fresh=fresh))
        self.questions.append(Asked(reader, word, since, told))
        return told

    def _writer(self, documents: Sequence[Document]) -> Callable[[], Awaitable[object]]:
        async def write() -> None:
            await self.put(self.draw.choice(documents))

        return write

    async def put(self, document: Document) -> bool:
        """Whether the next version is in; one that may not be is sent again first."""
        version = document.sent = document.accepted + 1
        told, response = await hand_in(self.http, document, version)
        self.calls.append(told)
        if response is None or response.is_error:
            return False
        document.accepted = version
        return True

    def _job(self, reader: Reader, word: str) -> Job:
        self._number += 1
        self.jobs.append(Job(f"key-{self._number}", reader, word))
        return self.jobs[-1]

    async def _queuer(self) -> None:
        """What may not have been accepted is queued again, and now and then what was."""
        if self.jobs and (not self.jobs[-1].id or self.draw.random() < AGAIN):
            await self.queue(self.jobs[-1])
        elif sum(job.ended is None for job in self.jobs) < OPEN:
            await self.queue(self._job(self._reader(), self.draw.choice([*LEVELS])))

    async def queue(self, job: Job) -> bool:
        """Whether it is accepted. A key names one job, however often it is sent."""
        told, response = await exchange(
            self.http,
            "queue",
            "POST",
            "/v1/answers",
            json={"question": f"At how many bar does the {job.word} valve close, for {job.key}?"},
            headers={**bearer(job.reader), "Prefer": "respond-async", "Idempotency-Key": job.key},
        )
        self.calls.append(told)
        if response is None or response.status_code != httpx.codes.ACCEPTED:
            return False
        said = response.json()["job_id"]
        if job.id not in {"", said}:
            job.problems.append(f"{job.key} is both {job.id} and {said}")
        job.id = said
        return True

    async def _looker(self) -> None:
        if accepted := self.accepted():
            await self.look(self.draw.choice(accepted))

    def accepted(self) -> list[Job]:
        return [job for job in self.jobs if job.id]

    async def look(self, job: Job) -> None:
        """A look at an ended job finds it as it ended; its answer may have been withdrawn since."""
        since = self.library.accepted(job.reader.tenant)
        told, response = await exchange(
            self.http, "look", "GET", f"/v1/jobs/{job.id}", headers=bearer(job.reader)
        )
        self.questions.append(Asked(job.reader, job.word, since, told))
        if response is None or response.is_error:
            return
        found = response.json()
        if found["answer"]:
            told.answer = answer_of(found["answer"])
        end = {name: found[name] for name in ("state", "attempts", "reason")}
        if job.ended is not None and end != job.ended:
            job.problems.append(f"job {job.id} ended as {job.ended} and then as {end}")
        if end["state"] in ENDED:
            job.ended = end

    async def ended(self, job: Job) -> bool:
        await self.look(job)
        return job.ended is not None

    async def answers(self, reader: Reader, word: str, mode: str) -> bool:
        told = await self.ask(self.faces.json, reader, word)
        return told.answer is not None and told.answer.mode == mode

    async def whole(self) -> bool:
        """Whether a question is answered by the model, a document comes in and a job is taken."""
        reader = Reader(self.draw.choice(TENANTS), AccessLevel.PUBLIC)
        for face in (self.faces.unary, self.faces.json):
            told = await self.ask(face, reader, STEADY)
            if told.answer is None or told.answer.mode != "GENERATED":
                return False
        put = await self.put(self.library.documents[reader.tenant, PROBE])
        return put and await self.queue(self._job(reader, STEADY))
