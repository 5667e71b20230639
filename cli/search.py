"""`sluice search`: the passages that bear on a question, without an answer."""

from collections.abc import Mapping
from typing import Any

from cli import exits
from cli.gateway_service import search
from cli.output import Output, titled


async def run(url: str, token: str, question: str, limit: int | None, output: Output) -> int:
    found = await search(url, token, question, limit)
    for number, passage in enumerate(found["passages"], start=1):
        output.line(f"[{number}] {_described(passage)}", style="cyan")
        output.line(passage["text"])
        output.line()
    counts = found["counts"]
    output.line(
        f"{counts['returned']} passages of {counts['candidates']} candidates,"
        f" {counts['passed_threshold']} above the threshold; scores: {found['score_space']}",
        style="bold",
    )
    output.document(found)
    return exits.OK


def _described(passage: Mapping[str, Any]) -> str:
    version = f", version {passage['version']}" if passage["version"] else ""
    where = " / ".join(passage["heading_path"]) or passage["title"]
    warned = ", resembles instructions to a model" if passage["suspected_injection"] else ""
    name = titled(passage["document_id"], where)
    return f"{name}{version} (score {passage['score']:.3f}{warned})"
