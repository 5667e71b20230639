"""What a reader of every right finds in the index itself."""

from collections import defaultdict
from collections.abc import Iterator

from qdrant_client import AsyncQdrantClient

from bench.parts import ordinary
from corpus import collection
from corpus.collection import DEFAULT_ALIAS
from corpus.epochs import read
from corpus.points import StoredPassage
from corpus.qdrant import Qdrant, wire
from corpus.scope import live, match
from tests.corpus.payloads import passage_in
from tests.suite.chaos.documents import TENANTS, Document, Library

LIMIT = 5.0  # seconds


async def amiss(url: str, library: Library) -> list[str]:
    """Documents that are not there as they were accepted: none, all of one version, no more."""
    qdrant, client = collection.connect(url), ordinary.client(url)
    try:
        found = {tenant: await _passages(qdrant, client, tenant) for tenant in TENANTS}
    finally:
        await client.close()
        await qdrant.close()
    return [
        problem
        for (tenant, _), document in library.documents.items()
        for problem in _amiss(document, found[tenant].pop(document.name, []))
    ] + [f"missing: nobody handed in {found}" for found in found.values() if found]


async def _passages(
    qdrant: Qdrant, client: AsyncQdrantClient, tenant: str
) -> dict[str, list[StoredPassage]]:
    epoch = await read(qdrant, DEFAULT_ALIAS, tenant, LIMIT)
    condition = wire.Filter(must=[match("tenant_id", tenant), *live(epoch)])
    records, _ = await client.scroll(DEFAULT_ALIAS, condition, limit=10_000)
    found = defaultdict(list)
    for record in records:
        passage = passage_in(str(record.id), record.payload)
        found[passage.document_id].append(passage)
    return dict(found)


def _amiss(document: Document, passages: list[StoredPassage]) -> Iterator[str]:
    """The last version that was sent may be there although nobody heard that it was accepted."""
    said = sorted(passage.text for passage in passages)
    possible = {document.accepted, document.sent} - {0}
    if said not in [sorted(document.sentences(version)) for version in possible]:
        yield f"missing: {document.tenant} {document.name} of {possible} is {said}"
    if {passage.access for passage in passages} - {document.level(one) for one in possible}:
        yield f"missing: {document.tenant} {document.name} has another level"
