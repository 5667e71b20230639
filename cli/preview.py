"""`sluice preview`: the chunks that documents would become; nothing is stored or embedded."""

import asyncio
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path

from chassis.errors import Forbidden, SluiceError, Unauthenticated, Unavailable
from cli import exits, folder, ingest_service
from cli.concurrency import each
from cli.folder import File, Walk
from cli.identity import Token
from cli.ingest import show_skipped
from cli.ingest_service import IngestService, Preview
from cli.output import Output, titled
from cli.progress import progress
from cli.refusal import Refusal, refusal

AT_ONCE = 4


async def run(path: Path, address: str, token: Token, output: Output) -> int:
    """Preview a file in full, or a folder in sums. Exit code 1 when documents would be refused."""
    found = folder.walk(path)
    began = time.monotonic()
    previews: dict[str, Preview] = {}
    refused = [Refusal(one.document_id, "", one.reason) for one in found.problems]
    async with ingest_service.connected(address, token) as service:
        with progress("preview", len(found.files), shown=not output.as_json) as step:

            async def one(file: File) -> None:
                await _preview(service, file, previews, refused)
                step()

            await each(found.files, one, at_once=AT_ONCE)
    refused.sort(key=lambda one: one.document_id)
    seconds = time.monotonic() - began
    if found.single:
        _show_chunks(output, previews)
    _show_sums(output, previews, refused, seconds)
    show_skipped(output, found.skipped)
    output.document(_document(found, previews, refused, seconds, whole=found.single))
    return exits.INCOMPLETE if refused else exits.OK


async def _preview(
    service: IngestService, file: File, previews: dict[str, Preview], refused: list[Refusal]
) -> None:
    try:
        content = await asyncio.to_thread(file.path.read_bytes)
        previews[file.document_id] = await service.preview(file.document_id, content)
    except OSError as error:
        reason = f"the file cannot be read: {error.strerror}"
        refused.append(Refusal(file.document_id, "", reason))
    except (Unauthenticated, Forbidden, Unavailable):
        raise
    except SluiceError as error:
        refused.append(refusal(file.document_id, error))


def _show_chunks(output: Output, previews: dict[str, Preview]) -> None:
    for document_id, preview in previews.items():
        about = f"({preview.access_level}, {preview.publication_state})"
        output.line(f"{titled(document_id, preview.title)} {about}", style="bold")
        for number, chunk in enumerate(preview.chunks):
            where = " / ".join(chunk.heading_path)
            output.line(f"--- chunk {number}, {chunk.tokens} tokens, {where}", style="cyan")
            output.line(chunk.text)


def _show_sums(
    output: Output, previews: dict[str, Preview], refused: list[Refusal], seconds: float
) -> None:
    output.table(
        "would be refused",
        ("document", "line", "reason"),
        [(one.document_id, one.line, one.reason) for one in refused],
    )
    chunks, tokens = _sums(previews)
    done = len(previews) + len(refused)
    output.line(
        f"{len(previews)} documents, {chunks} chunks, {tokens:,} tokens, {len(refused)} refused"
        f" in {seconds:.1f} s ({done / max(seconds, 1e-3):.0f} files/s)",
        style="bold",
    )
    for reason, number in Counter(one.reason for one in refused).most_common():
        output.line(f"{number} x {reason}")


def _sums(previews: dict[str, Preview]) -> tuple[int, int]:
    chunks = sum(len(preview.chunks) for preview in previews.values())
    return chunks, sum(preview.tokens for preview in previews.values())


def _document(
    found: Walk,
    previews: dict[str, Preview],
    refused: list[Refusal],
    seconds: float,
    *,
    whole: bool,
) -> dict[str, object]:
    chunks, tokens = _sums(previews)
    sums: dict[str, object] = {
        "documents": len(previews),
        "chunks": chunks,
        "tokens": tokens,
        "refused": [asdict(one) for one in refused],
        "skipped": dict(found.skipped),
        "seconds": round(seconds, 3),
    }
    if whole:
        sums["previews"] = {name: asdict(preview) for name, preview in previews.items()}
    return sums
