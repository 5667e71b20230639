"""The commands and their options; what they do is in the module of the same name."""

from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from chassis import logs
from chassis.identity import AccessLevel
from cli import (
    addresses,
    capacity,
    demo,
    documents,
    evaluation,
    exits,
    ingest,
    job,
    options,
    preview,
    reindex,
    search,
    status,
    up,
)
from cli.answer import answered, queued
from cli.evidence_service import Search
from cli.identity import Identity
from cli.options import (
    Data,
    FreePorts,
    Groups,
    Json,
    Level,
    Profile,
    Roles,
    Source,
    Subject,
    Target,
    Tenant,
    Token,
    access_level,
    listed,
)
from cli.output import Output, finish
from cli.questioning import Stages
from cli.sync import Plan
from local import state
from local.suite import Suite

app = typer.Typer(
    help="Grounded answers over your own documents.",
    epilog=exits.reference(),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


DATA = Path(".sluice")
TEAM = "team"


@app.command("up")
def up_command(
    *,
    profile: Profile = "embedded",
    data: Data = DATA,
    free_ports: FreePorts = False,
    as_json: Json = False,
) -> None:
    """Start every process on this machine and stay; Ctrl-C stops them all."""
    output = Output(as_json=as_json)

    async def work() -> int:
        ports: Literal["free"] | None = "free" if free_ports else None
        suite = Suite(data, profile=profile, ports=ports, report=partial(up.told, output))
        return await up.run(suite, output)

    finish(output, work)


@app.command("demo")
def demo_command(
    *,
    profile: Profile = "embedded",
    data: Data = DATA,
    free_ports: FreePorts = False,
    as_json: Json = False,
) -> None:
    """Ingest the examples, ask three questions, check every outcome. Uses a suite that runs."""
    output = Output(as_json=as_json)
    person = Identity("developer", "demo", AccessLevel.TEAM)

    async def work() -> int:
        ports: Literal["free"] | None = "free" if free_ports else None
        told = partial(up.told, output)
        suite = state.read(data) or Suite(data, profile=profile, ports=ports, report=told)
        return await demo.run(suite, person, output)

    finish(output, work)


@app.command("ingest")
def ingest_command(  # noqa: PLR0913 - an option each
    path: Target,
    *,
    source: Source = "",
    allow_empty: Annotated[
        bool, typer.Option("--allow-empty", help="Let the source lose every document it held.")
    ] = False,
    reconcile: Annotated[
        bool, typer.Option(help="Retire documents of the source that the folder no longer holds.")
    ] = True,
    send_all: Annotated[
        bool, typer.Option("--send-all", help="Send documents whose content is unchanged, too.")
    ] = False,
    tenant: Tenant = "demo",
    token: Token = "",
    data: Data = DATA,
    as_json: Json = False,
) -> None:
    """Bring documents into the index and retire those that are gone."""
    output = Output(as_json=as_json)
    person = Identity("developer", tenant, AccessLevel.TEAM, token=token)
    plan = Plan(
        source or ingest.default_source(path),
        retire=reconcile and path.is_dir(),
        allow_empty=allow_empty,
        send_all=send_all,
        expected=state.read(data) is not None,
    )

    async def work() -> int:
        return await ingest.run(path, plan, addresses.ingest(data), person.for_ingest, output)

    finish(output, work)


@app.command("reindex")
def reindex_command(  # noqa: PLR0913 - an option each
    paths: Annotated[list[Path], typer.Argument(help="The folders that the documents come from.")],
    *,
    allow_missing: Annotated[
        bool,
        typer.Option("--allow-missing", help="Switch although documents would be missing."),
    ] = False,
    drop_previous: Annotated[
        bool, typer.Option("--drop-previous", help="Delete the old collection after the switch.")
    ] = False,
    tenant: Tenant = "demo",
    token: Token = "",
    data: Data = DATA,
    as_json: Json = False,
) -> None:
    """Build the index anew with other settings beside the one in use, then switch over.

    The environment says what is new, such as SLUICE_EMBEDDING_PROFILE or SLUICE_CHUNK_TOKENS.
    """
    output = Output(as_json=as_json)
    person = Identity("developer", tenant, AccessLevel.TEAM, roles=("operator",), token=token)
    switch = reindex.Switch(allow_missing, drop_previous)

    async def work() -> int:
        return await reindex.run(data, paths, switch, person.for_ingest, output)

    finish(output, work)


@app.command("preview")
def preview_command(
    path: Target,
    *,
    tenant: Tenant = "demo",
    token: Token = "",
    data: Data = DATA,
    as_json: Json = False,
) -> None:
    """Show the chunks that a document would become; a folder's in sums. Stores nothing."""
    output = Output(as_json=as_json)
    person = Identity("developer", tenant, AccessLevel.TEAM, token=token)

    async def work() -> int:
        return await preview.run(path, addresses.ingest(data), person.for_ingest, output)

    finish(output, work)


@app.command("ask")
def ask_command(  # noqa: PLR0913 - an option each
    question: Annotated[str, typer.Argument(help="The question, in quotes.")],
    *,
    level: Level = TEAM,  # type: ignore[assignment] # typer parses defaults
    groups: Groups = "",
    tenant: Tenant = "demo",
    subject: Subject = "developer",
    token: Token = "",
    data: Data = DATA,
    later: Annotated[
        bool, typer.Option("--later", help="Queue it as a job and do not wait for the answer.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Ask the documents a question."""
    output = Output(as_json=as_json)
    person = Identity(subject, tenant, level, listed(groups), token=token)
    ask = queued if later else answered

    async def work() -> int:
        answer = await ask(addresses.gateway(data), person.for_gateway(), question, output)
        output.document(answer.raw)
        return exits.OK

    finish(output, work)


@app.command("search")
def search_command(  # noqa: PLR0913 - an option each
    question: Annotated[str, typer.Argument(help="What to look for, in quotes.")],
    *,
    limit: Annotated[
        int | None, typer.Option(min=1, max=100, help="Most passages; else as many as seem useful.")
    ] = None,
    level: Level = TEAM,  # type: ignore[assignment] # typer parses defaults
    groups: Groups = "",
    tenant: Tenant = "demo",
    subject: Subject = "developer",
    token: Token = "",
    data: Data = DATA,
    as_json: Json = False,
) -> None:
    """Find the passages that bear on a question; no model is asked."""
    output = Output(as_json=as_json)
    person = Identity(subject, tenant, level, listed(groups), token=token)

    async def work() -> int:
        url = addresses.gateway(data)
        return await search.run(url, person.for_gateway(), question, limit, output)

    finish(output, work)


@app.command("job")
def job_command(  # noqa: PLR0913 - an option each
    job_id: Annotated[str, typer.Argument(help="What sluice ask --later printed.")],
    *,
    cancel: Annotated[bool, typer.Option("--cancel", help="End it, if it has not yet.")] = False,
    level: Level = TEAM,  # type: ignore[assignment] # typer parses defaults
    groups: Groups = "",
    tenant: Tenant = "demo",
    subject: Subject = "developer",
    token: Token = "",
    data: Data = DATA,
    as_json: Json = False,
) -> None:
    """Look at a queued question; its answer is shown by what its owner may read now."""
    output = Output(as_json=as_json)
    person = Identity(subject, tenant, level, listed(groups), token=token)

    async def work() -> int:
        url = addresses.gateway(data)
        return await job.run(url, person.for_gateway(), job_id, output, cancel=cancel)

    finish(output, work)


@app.command("eval")
def eval_command(  # noqa: PLR0913 - an option each
    gold: options.Gold = evaluation.EXAMPLES,
    *,
    stage: options.Stage = "all",
    mode: options.Mode = "default",
    diversity: options.Diversity = None,
    repeat: options.Repeat = 1,
    at_once: options.AtOnce = 4,
    baseline: options.Baseline = None,
    gates: options.Gates = None,
    calibrate: options.Calibrate = False,
    qualify: options.Qualify = "",
    levels: options.Levels = "",
    bring_in: options.BringIn = False,
    tenant: options.GoldTenant = "",
    out: options.Out = None,
    data: Data = DATA,
    as_json: Json = False,
) -> None:
    """Measure the suite against questions with known answers; exit code 1 when a gate fails.

    Asks as the people of the gold set, whom a suite with SLUICE_ENV=development accepts.
    """
    output = Output(as_json=as_json)
    plan = evaluation.Plan(
        path=gold,
        stages=_stages(stage, qualifying=bool(qualify)),
        search=Search(None if mode == "default" else mode, diversity),
        repeat=repeat,
        at_once=at_once,
        out=out or data / "evals",
        tenant=tenant,
        baseline=baseline,
        gates=gates,
        calibrate=calibrate,
        bring_in=bring_in,
        qualify=qualify,
        levels=tuple(access_level(label) for label in listed(levels)),
    )

    async def work() -> int:
        return await evaluation.run(plan, data, output)

    finish(output, work)


def _stages(stage: options.Stage, *, qualifying: bool) -> Stages:
    """A candidate is asked for answers alone."""
    if qualifying:
        return Stages(retrieve=False)
    return Stages(retrieve=stage != "answer", answer=stage != "retrieve")


@app.command("documents")
def documents_command(
    *,
    source: Annotated[str, typer.Option(help="Only documents of this source.")] = "",
    tenant: Tenant = "demo",
    token: Token = "",
    data: Data = DATA,
    as_json: Json = False,
) -> None:
    """List the documents in the index."""
    output = Output(as_json=as_json)
    person = Identity("developer", tenant, AccessLevel.TEAM, token=token)

    async def work() -> int:
        return await documents.run(source, addresses.ingest(data), person.for_ingest, output)

    finish(output, work)


@app.command("token")
def token_command(  # noqa: PLR0913 - an option each
    *,
    level: Level = TEAM,  # type: ignore[assignment] # typer parses defaults
    groups: Groups = "",
    roles: Roles = "",
    tenant: Tenant = "demo",
    subject: Subject = "developer",
    lifetime: Annotated[int, typer.Option(min=1, help="Seconds until it expires.")] = 3_600,
    as_json: Json = False,
) -> None:
    """Print a token for the gateway; a suite with SLUICE_ENV=development accepts it."""
    person = Identity(subject, tenant, level, listed(groups), listed(roles))
    output = Output(as_json=as_json)
    minted = person.for_gateway(lifetime)
    if as_json:
        output.document({"token": minted, "expires_in": lifetime})
    else:
        typer.echo(minted)


@app.command("capacity")
def capacity_command(  # noqa: PLR0913 - an option each
    *,
    watch: Annotated[
        bool | None,
        typer.Option(
            "--watch/--once", help="Refresh every second until Ctrl-C; the default on a terminal."
        ),
    ] = None,
    tenant: Tenant = "demo",
    subject: Subject = "developer",
    token: Token = "",
    data: Data = DATA,
    as_json: Json = False,
) -> None:
    """Show what is left of every allowance, what is in flight and what was refused."""
    output = Output(as_json=as_json)
    person = Identity(subject, tenant, AccessLevel.PUBLIC, roles=("operator",), token=token)
    live = output.people.is_terminal if watch is None else watch

    async def work() -> int:
        url = addresses.gateway(data)
        return await capacity.run(url, person.for_gateway, output, watch=live and not as_json)

    finish(output, work)


@app.command("status")
def status_command(
    *, tenant: Tenant = "demo", token: Token = "", data: Data = DATA, as_json: Json = False
) -> None:
    """Show every process, ready or not, what the index holds and what capacity is left."""
    output = Output(as_json=as_json)
    person = Identity("developer", tenant, AccessLevel.TEAM, roles=("operator",), token=token)

    async def work() -> int:
        asked = status.Asked(
            addresses.ingest(data), person.for_ingest, addresses.gateway(data), person.for_gateway
        )
        return await status.run(data, addresses.ports(data), asked, output)

    finish(output, work)


@app.command("doctor")
def doctor_command(
    *,
    processes: Annotated[
        str,
        typer.Option(metavar="A,B", help="Only what these need, such as the one of a pod."),
    ] = "",
    data: Data = DATA,
    as_json: Json = False,
) -> None:
    """Look at settings, folders, keys, ports, clocks and every part, and say how to mend them.

    Embeds one word. With SLUICE_ENV=production it goes by the environment alone, as a pod does.
    """
    # What doctor looks into takes a second to import, which no other command has to wait for.
    from cli.doctor import run as doctor  # noqa: PLC0415 - as above
    from cli.doctor.setup import KINDS  # noqa: PLC0415 - as above

    output = Output(as_json=as_json)
    names = listed(processes)
    if unknown := set(names) - KINDS.keys():
        raise typer.BadParameter(f"no process {', '.join(sorted(unknown))}: {', '.join(KINDS)}")

    logs.start("doctor", "error")  # what goes wrong is told as a finding

    async def work() -> int:
        return await doctor.run(data, names, output)

    finish(output, work)


def main() -> None:
    app()


if __name__ == "__main__":
    main()
