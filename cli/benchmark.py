"""Brings the corpus of a retrieval benchmark into the index, so that it can be searched."""

from pathlib import Path
from tempfile import TemporaryDirectory

from chassis.errors import InvalidInput
from cli import ingest_service
from cli.folder import File, Walk
from cli.identity import Token
from cli.output import Output
from cli.progress import progress
from cli.sync import Plan, sync
from evals import beir


async def bring_in(path: Path, source: str, address: str, token: Token, output: Output) -> None:
    """Sync the benchmark's texts as a source of their own.

    Raises InvalidInput where one of them was refused: its judgments could not be scored.
    """
    with TemporaryDirectory() as folder:
        found = Walk(
            files=[_file(text, Path(folder), at) for at, text in enumerate(beir.texts(path))]
        )
        async with ingest_service.connected(address, token) as index:
            with progress(f"ingest {source}", len(found.files), shown=not output.as_json) as step:
                report = await sync(index, found, Plan(source, retire=True), step, step.say)
    if report.refused:
        one = report.refused[0]
        raise InvalidInput(
            f"{len(report.refused)} texts were refused, such as {one.document_id}: {one.reason}",
            field="corpus",
        )
    output.line(
        f"{source}: {len(found.files)} documents in the index, {report.embedded} embedded now"
    )


def _file(text: beir.Text, folder: Path, number: int) -> File:
    path = folder / f"{number}.md"
    path.write_bytes(text.content)
    return File(text.document, path)
