"""`sluice documents`: what is live in the index."""

from dataclasses import asdict

from cli import exits, ingest_service
from cli.identity import Token
from cli.output import Output

COLUMNS = ("document", "title", "version", "access", "state", "chunks", "source")


async def run(source: str, address: str, token: Token, output: Output) -> int:
    async with ingest_service.connected(address, token) as service:
        documents = await service.documents(source)
    rows = [
        (
            one.document_id,
            one.title,
            one.version,
            ", ".join((one.access_level, *one.groups)),
            one.publication_state,
            one.chunks,
            one.source,
        )
        for one in documents
    ]
    output.table("documents", COLUMNS, rows)
    chunks = sum(one.chunks for one in documents)
    output.line(f"{len(documents)} documents, {chunks} chunks", style="bold")
    output.document({"documents": [asdict(one) for one in documents]})
    return exits.OK
