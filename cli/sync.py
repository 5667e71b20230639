"""Bring the index in step with a folder: send what changed, retire what is gone."""

import asyncio
import hashlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from chassis.errors import (
    Forbidden,
    InvalidInput,
    SluiceError,
    Unauthenticated,
    Unavailable,
)
from cli.concurrency import each
from cli.folder import File, Walk
from cli.ingest_service import Listed, Stored
from cli.patience import PAUSES, Patience
from cli.refusal import Refusal, refusal

AT_ONCE = 4

Step = Callable[[], None]
Say = Callable[[str], None]


class Index(Protocol):
    """What a sync needs of the ingest stage."""

    async def documents(self, source: str = "") -> list[Listed]: ...
    async def put(self, document_id: str, source: str, content: bytes) -> Stored: ...
    async def reconcile(
        self, source: str, document_ids: Sequence[str], *, allow_empty: bool
    ) -> list[str]: ...


@dataclass(slots=True)
class Report:
    """What a sync did. Documents are named by their ids.

    `taken_over` names the source that a document was of before: two folders hold a file of that id.
    """

    added: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    retired: list[str] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)
    taken_over: dict[str, str] = field(default_factory=dict)
    chunks: int = 0
    embedded: int = 0
    reused: int = 0

    @property
    def in_place(self) -> int:
        return len(self.added) + len(self.updated) + len(self.unchanged)

    def count(self, document_id: str, stored: Stored) -> None:
        outcomes = {"added": self.added, "updated": self.updated, "unchanged": self.unchanged}
        outcomes[stored.outcome].append(document_id)
        self.chunks += stored.chunks
        self.embedded += stored.embedded
        self.reused += stored.reused


@dataclass(frozen=True, slots=True)
class Plan:
    """How to sync. `retire` is for whole folders; `send_all` sends what seems unchanged too.

    Where the stage is `expected` to run, silence at the beginning is waited out like any later one.
    """

    source: str
    retire: bool
    allow_empty: bool = False
    send_all: bool = False
    expected: bool = False
    pauses: Sequence[float] = PAUSES


def _unheard(_text: str) -> None:
    """For who has nobody to tell that a run waits."""


@dataclass(frozen=True, slots=True)
class _Patient:
    """The index, with what it turns away sent again."""

    index: Index
    patience: Patience

    async def documents(self, source: str = "") -> list[Listed]:
        return await self.patience.call(partial(self.index.documents, source))

    async def put(self, document_id: str, source: str, content: bytes) -> Stored:
        return await self.patience.put(partial(self.index.put, document_id, source, content))

    async def reconcile(
        self, source: str, document_ids: Sequence[str], *, allow_empty: bool
    ) -> list[str]:
        retire = partial(self.index.reconcile, source, document_ids, allow_empty=allow_empty)
        return await self.patience.call(retire)


async def sync(index: Index, found: Walk, plan: Plan, step: Step, say: Say = _unheard) -> Report:
    """Send, then retire. `step` is called once a file, `say` once an outage that is waited out.

    A document's own fault is a refusal in the report. Raises what concerns all of them: no
    connection, no right, or a source that would lose everything without `allow_empty`. A note on
    what ends it midway, the command's own end included, says how far it came.
    """
    patient = _Patient(index, Patience(say, plan.pauses))
    listed = await (patient if plan.expected else index).documents(plan.source)
    indexed = {document.document_id: document for document in listed}
    if plan.retire and not plan.allow_empty:
        _refuse_to_empty(found, plan.source, indexed)
    elsewhere = await _elsewhere(patient, found, indexed)
    report = Report()
    report.refused += [Refusal(one.document_id, "", one.reason) for one in found.problems]

    async def send(file: File) -> None:
        try:
            await _send(patient, file, plan, indexed, report)
        except SluiceError as error:
            error.add_note(f"this ended the run at {file.document_id}")
            raise
        step()

    try:
        await each(found.files, send, at_once=AT_ONCE)
        report.taken_over = {name: elsewhere[name] for name in report.updated if name in elsewhere}
        if plan.retire:
            report.retired = await _retire(patient, _kept(found, indexed), indexed, plan)
    except (SluiceError, asyncio.CancelledError) as error:
        error.add_note(
            f"{report.in_place} of {len(found.files)} documents are in place;"
            " the same command goes on from there"
        )
        raise
    report.refused.sort(key=lambda one: one.document_id)
    return report


def _refuse_to_empty(found: Walk, source: str, indexed: Collection[str]) -> None:
    """A wrong path must not retire a whole source, and neither must another folder's name."""
    if indexed and not set(_kept(found, indexed)) & set(indexed):
        raise InvalidInput(
            f"none of the {len(indexed)} documents of source {source!r} is here, so all would be"
            " retired: name another source with --source, or pass --allow-empty",
            field="path",
        )


def _kept(found: Walk, indexed: Collection[str]) -> list[str]:
    """Ids that stay: what is there, and what cannot be read and so may be there."""
    unreadable = {problem.document_id for problem in found.problems}
    folders = tuple(one for one in unreadable if one.endswith("/"))
    hidden = {one for one in indexed if one.startswith(folders)}
    return sorted({file.document_id for file in found.files} | (unreadable - {*folders}) | hidden)


async def _elsewhere(index: Index, found: Walk, indexed: Collection[str]) -> dict[str, str]:
    """The sources of documents that are not of this one. Nothing new can be nobody else's."""
    if all(file.document_id in indexed for file in found.files):
        return {}
    listed = await index.documents()
    return {one.document_id: one.source for one in listed if one.document_id not in indexed}


async def _send(
    index: Index, file: File, plan: Plan, indexed: dict[str, Listed], report: Report
) -> None:
    try:
        content = await asyncio.to_thread(file.path.read_bytes)
    except OSError as error:
        reason = f"the file cannot be read: {error.strerror}"
        report.refused.append(Refusal(file.document_id, "", reason))
        return
    known = indexed.get(file.document_id)
    same = known is not None and known.content_hash == hashlib.sha256(content).hexdigest()
    if same and not plan.send_all:
        report.unchanged.append(file.document_id)
        return
    try:
        stored = await index.put(file.document_id, plan.source, content)
        report.count(file.document_id, stored)
    except (Unauthenticated, Forbidden, Unavailable):
        raise
    except SluiceError as error:
        report.refused.append(refusal(file.document_id, error))


async def _retire(
    index: Index, kept: Sequence[str], indexed: Collection[str], plan: Plan
) -> list[str]:
    if not kept and not indexed:
        return []
    return await index.reconcile(plan.source, kept, allow_empty=plan.allow_empty)
