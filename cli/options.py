"""What may be said to the commands: each option's type, name, bounds and sentence."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from chassis.identity import AccessLevel


def access_level(label: str) -> AccessLevel:
    """Raises BadParameter, which names the option."""
    try:
        return AccessLevel.parse(label)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def listed(text: str) -> tuple[str, ...]:
    """The parts of `A,B`."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON document on standard output, nothing else.")
]
Data = Annotated[
    Path, typer.Option("--data", help="Folder of the suite on this machine.", file_okay=False)
]
Profile = Annotated[str, typer.Option(help="Settings file in local/profiles to start with.")]
FreePorts = Annotated[
    bool,
    typer.Option("--free-ports", help="Take any free ports; commands find them by --data."),
]
Source = Annotated[str, typer.Option(help="Name of the source; the folder's name when not given.")]
Target = Annotated[Path, typer.Argument(help="A file, or a folder with everything below it.")]
Subject = Annotated[str, typer.Option(help="Who asks (development only).")]
Tenant = Annotated[str, typer.Option(help="Whose documents (development only).")]
Level = Annotated[
    AccessLevel,
    typer.Option(
        parser=access_level,
        metavar="LEVEL",
        help="Access level: public, team or restricted (development only).",
    ),
]
Groups = Annotated[
    str, typer.Option(metavar="A,B", help="Groups of the person (development only).")
]
Roles = Annotated[str, typer.Option(metavar="A,B", help="Roles of the person (development only).")]
Token = Annotated[
    str,
    typer.Option(
        envvar="SLUICE_TOKEN",
        show_envvar=True,
        help="Token to send instead of a development identity.",
    ),
]

# Of `sluice eval` alone.
Gold = Annotated[
    Path,
    typer.Argument(
        help="A gold set: .yaml, .jsonl, or a folder with corpus.jsonl, queries.jsonl and"
        " qrels.tsv. The examples' own when not given.",
        show_default=False,
    ),
]
Stage = Annotated[
    Literal["all", "retrieve", "answer"],
    typer.Option(help="Ask the retrieve stage, the whole suite for answers, or both."),
]
Mode = Annotated[
    Literal["default", "dense", "sparse", "fused"],
    typer.Option(help="How retrieve searches; default is as the stage is set."),
]
Diversity = Annotated[
    float | None,
    typer.Option(min=0, max=1, help="Spread of retrieve's passages; the stage's when unset."),
]
Repeat = Annotated[int, typer.Option(min=1, max=100, help="Ask for each answer so often.")]
AtOnce = Annotated[int, typer.Option(min=1, max=64, help="Questions at once.")]
Baseline = Annotated[
    Path | None, typer.Option(help="Results (JSON) of an earlier run to compare with.")
]
Gates = Annotated[Path | None, typer.Option(help="Gates (YAML) in place of the gold set's own.")]
Calibrate = Annotated[bool, typer.Option("--calibrate", help="Sweep the thresholds, too.")]
Qualify = Annotated[
    str,
    typer.Option(
        metavar="CANDIDATE",
        help="Try this candidate of SLUICE_ANSWER_CANDIDATES alone on the held-out half, and"
        " write the report that generate demands of it; exit code 1 when it does not pass.",
    ),
]
Levels = Annotated[
    str,
    typer.Option(metavar="A,B", help="With --qualify: levels of the documents it may be shown."),
]
BringIn = Annotated[
    bool, typer.Option("--ingest", help="Bring a folder's corpus into the index first.")
]
GoldTenant = Annotated[
    str, typer.Option(help="Whose documents; demo, or for a folder its name, when not given.")
]
Out = Annotated[
    Path | None,
    typer.Option(help="Folder for results and report; evals in --data when not given."),
]
