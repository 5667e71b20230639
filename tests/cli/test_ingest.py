import asyncio
from pathlib import Path

import pytest
from opentelemetry import trace

from chassis.errors import (
    Conflict,
    DeadlineExceeded,
    Forbidden,
    InvalidInput,
    SluiceError,
    Unauthenticated,
    Unavailable,
)
from chassis.identity import AccessLevel
from cli import folder
from cli.exits import Unreachable
from cli.identity import Identity, Token
from cli.ingest_service import connected
from cli.sync import Plan, Report, sync
from tests.cli.stage import Stage

DEVELOPER = Identity("developer", "demo", AccessLevel.TEAM)
HASTY = (0.0, 0.0)


def plan(**changes: object) -> Plan:
    fields: dict[str, object] = {"source": "docs", "retire": True, "pauses": HASTY, **changes}
    return Plan(**fields)  # type: ignore[arg-type] # a test's own shorthand


async def synced(
    stage: Stage, root: Path, token: Token = DEVELOPER.for_ingest, **changes: object
) -> Report:
    stage.calls.clear()
    async with connected(stage.address, token) as index:
        return await sync(index, folder.walk(root), plan(**changes), lambda: None)


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    root = tmp_path / "docs"
    for name in ("a.md", "b.md", "sub/c.txt"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"text of {name}")
    return root


async def test_a_second_run_sends_nothing(stage: Stage, docs: Path) -> None:
    first = await synced(stage, docs)
    second = await synced(stage, docs)
    assert sorted(first.added) == ["a.md", "b.md", "sub/c.txt"]
    assert (first.chunks, first.embedded) == (6, 6)
    assert sorted(second.unchanged) == sorted(first.added)
    assert (stage.calls, second.added, second.embedded) == ([], [], 0)


async def test_what_changed_is_sent_and_what_is_gone_is_retired(stage: Stage, docs: Path) -> None:
    await synced(stage, docs)
    (docs / "a.md").write_text("another text")
    (docs / "b.md").rename(docs / "renamed.md")
    report = await synced(stage, docs)
    assert (report.updated, report.added, report.retired) == (["a.md"], ["renamed.md"], ["b.md"])
    assert sorted(stage.documents) == ["a.md", "renamed.md", "sub/c.txt"]
    assert stage.contents["a.md"] == b"another text"


async def test_a_large_file_arrives_whole(stage: Stage, docs: Path) -> None:
    content = bytes(range(1, 10)) * 200_000
    (docs / "a.md").write_bytes(content)
    await synced(stage, docs)
    assert stage.contents["a.md"] == content


async def test_a_malformed_document_is_named_with_its_line_and_the_others_go_in(
    stage: Stage, docs: Path
) -> None:
    (docs / "b.md").write_text("---\naccess: secret\n---\n")
    report = await synced(stage, docs)
    assert sorted(report.added) == ["a.md", "sub/c.txt"]
    (refusal,) = report.refused
    assert (refusal.document_id, refusal.line) == ("b.md", "2")
    assert refusal.reason == "access: no such level"


async def test_a_document_that_is_refused_now_keeps_its_earlier_revision(
    stage: Stage, docs: Path
) -> None:
    await synced(stage, docs)
    (docs / "b.md").write_text("access: secret")
    report = await synced(stage, docs)
    assert (report.retired, len(report.refused)) == ([], 1)
    assert stage.contents["b.md"] == b"text of b.md"


async def test_documents_below_a_folder_that_cannot_be_read_are_not_retired(
    stage: Stage, docs: Path
) -> None:
    await synced(stage, docs)
    found = folder.walk(docs)
    found.files = [file for file in found.files if file.document_id != "sub/c.txt"]
    found.problems = [folder.Problem("sub/", "the folder cannot be read: Permission denied")]
    async with connected(stage.address, DEVELOPER.for_ingest) as index:
        report = await sync(index, found, plan(), lambda: None)
    assert report.retired == []
    assert [one.document_id for one in report.refused] == ["sub/"]


async def test_an_emptied_folder_retires_nothing_unless_told_so(stage: Stage, docs: Path) -> None:
    await synced(stage, docs)
    for file in folder.walk(docs).files:
        file.path.unlink()
    with pytest.raises(InvalidInput, match=r"none of the 3 documents .* --allow-empty"):
        await synced(stage, docs)
    assert len(stage.documents) == 3
    report = await synced(stage, docs, allow_empty=True)
    assert len(report.retired) == 3
    assert stage.documents == {}


async def test_another_folder_of_the_same_name_does_not_replace_the_first(
    stage: Stage, docs: Path, tmp_path: Path
) -> None:
    await synced(stage, docs)
    other = tmp_path / "other" / "docs"
    other.mkdir(parents=True)
    (other / "x.md").write_text("text")
    with pytest.raises(InvalidInput, match="--source"):
        await synced(stage, other)
    assert sorted(stage.documents) == ["a.md", "b.md", "sub/c.txt"]


async def test_another_source_is_left_alone(stage: Stage, docs: Path) -> None:
    await synced(stage, docs)
    report = await synced(stage, docs / "sub", source="sub")
    assert (report.added, report.retired) == (["c.txt"], [])
    assert len(stage.documents) == 4


async def test_what_another_source_had_under_the_same_name_is_told(
    stage: Stage, docs: Path, tmp_path: Path
) -> None:
    await synced(stage, docs)
    other = tmp_path / "other"
    other.mkdir()
    (other / "a.md").write_text("another text")
    (other / "new.md").write_text("text")
    report = await synced(stage, other, source="other")
    assert (report.taken_over, report.added) == ({"a.md": "docs"}, ["new.md"])
    assert (await synced(stage, other, source="other")).taken_over == {}


async def test_without_reconciling_nothing_is_retired(stage: Stage, docs: Path) -> None:
    await synced(stage, docs)
    (docs / "a.md").unlink()
    report = await synced(stage, docs, retire=False)
    assert (report.retired, "a.md" in stage.documents) == ([], True)


async def test_everything_is_sent_again_on_request(stage: Stage, docs: Path) -> None:
    await synced(stage, docs)
    report = await synced(stage, docs, send_all=True)
    assert (sorted(report.updated), len(stage.calls)) == (["a.md", "b.md", "sub/c.txt"], 3)


async def test_a_busy_stage_is_asked_again(stage: Stage, docs: Path) -> None:
    stage.failures = [Conflict("another publisher"), Conflict("another publisher")]
    report = await synced(stage, docs)
    assert (len(report.added), report.refused, len(stage.calls)) == (3, [], 5)


async def test_every_try_of_a_put_carries_a_token_of_its_own(stage: Stage, docs: Path) -> None:
    minted: list[str] = []

    def token() -> str:
        minted.append(DEVELOPER.for_ingest())
        return minted[-1]

    stage.failures = [
        Unavailable("the index does not answer"),
        Unauthenticated("the token has expired", reason="TOKEN_EXPIRED"),
    ]
    report = await synced(stage, docs, token)
    listing, retiring = 2, 1  # its own documents, then those of every source
    assert (len(report.added), len(stage.calls)) == (3, 5)
    assert len(minted) == listing + 5 + retiring


async def test_a_put_belongs_to_the_trace_of_who_sends_it(stage: Stage, docs: Path) -> None:
    context = trace.SpanContext(7, 8, is_remote=False, trace_flags=trace.TraceFlags(1))
    with trace.use_span(trace.NonRecordingSpan(context)):
        await synced(stage, docs)
    assert {header.split("-")[1] for header in stage.traces} == {f"{7:032x}"}


@pytest.mark.parametrize(
    "failure",
    [
        Unavailable("the index does not answer"),
        Unauthenticated("the token has expired", reason="TOKEN_EXPIRED"),
        Unauthenticated("the token does not hold", reason="BAD_TOKEN"),
        Forbidden("the role ingest is missing"),
    ],
)
async def test_a_run_that_ends_midway_says_where_and_retires_nothing(
    stage: Stage, docs: Path, failure: SluiceError
) -> None:
    await synced(stage, docs)
    (docs / "a.md").unlink()
    (docs / "b.md").write_text("another text")
    stage.failures = [failure] * 3
    with pytest.raises(type(failure), match=failure.message) as ended:
        await synced(stage, docs)
    assert ended.value.__notes__ == [
        "this ended the run at b.md",
        "1 of 2 documents are in place; the same command goes on from there",
    ]
    assert "a.md" in stage.documents


async def test_a_run_that_is_stopped_says_how_far_it_came(stage: Stage, docs: Path) -> None:
    async with connected(stage.address, DEVELOPER.for_ingest) as index:

        def stop_it() -> None:
            running.cancel()

        running = asyncio.create_task(sync(index, folder.walk(docs), plan(), stop_it))
        with pytest.raises(asyncio.CancelledError) as stop:
            await running
    (note,) = stop.value.__notes__
    assert note.endswith("of 3 documents are in place; the same command goes on from there")


async def test_the_development_identity_carries_the_tenant_and_the_role(
    stage: Stage, docs: Path
) -> None:
    await synced(stage, docs)
    (caller,) = stage.callers
    assert (caller.subject, caller.tenant, caller.roles) == (
        "developer",
        "demo",
        frozenset({"ingest"}),
    )


async def test_a_stage_that_is_expected_is_waited_for_from_the_beginning(docs: Path) -> None:
    said: list[str] = []
    async with connected("127.0.0.1:1", DEVELOPER.for_ingest) as index:
        with pytest.raises(Unreachable):
            await sync(index, folder.walk(docs), plan(), lambda: None, said.append)
        assert said == []
        with pytest.raises(Unreachable):
            await sync(index, folder.walk(docs), plan(expected=True), lambda: None, said.append)
    (line,) = said
    assert line.startswith("nothing answers at 127.0.0.1:1")


async def test_a_document_whose_time_was_over_goes_on_from_there(stage: Stage, docs: Path) -> None:
    stage.failures = [
        DeadlineExceeded(f"{far} of 9", metadata={"embedded": str(far)}) for far in (3, 6)
    ]
    (docs / "a.md").unlink()
    (docs / "b.md").unlink()
    report = await synced(stage, docs)
    assert (report.added, stage.calls) == (["sub/c.txt"], ["sub/c.txt"] * 3)
    stage.failures = [DeadlineExceeded("0 of 9", metadata={"embedded": "0"})] * 2
    report = await synced(stage, docs, send_all=True)
    assert [one.reason for one in report.refused] == ["0 of 9"]
