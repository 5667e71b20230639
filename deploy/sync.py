"""python -m deploy.sync: bring the index in step with a mounted folder, once. Made for a CronJob.

It mints its own tokens, so it holds the key that the gateway holds: run it where the gateway runs.
"""

from functools import partial
from pathlib import Path

import typer
from pydantic import Field, model_validator

from chassis.identity import AccessLevel, Caller, Minter, signing_key
from chassis.settings import PREFIX, ProcessSettings, load
from cli import ingest
from cli.identity import INGEST_ROLE
from cli.output import Output, finish
from cli.sync import Plan

SUBJECT = "folder-sync"


class SyncSettings(ProcessSettings):
    """What folder to sync, as whose documents, and to where."""

    ingest_target: str = Field(
        "dns:///127.0.0.1:50051",
        description="where ingest is reached",
        examples=["dns:///ingest:50051"],
    )
    sync_path: Path = Field(description="folder with the documents", examples=["/documents"])
    sync_source: str = Field(
        min_length=1, description="name of the source that the folder is", examples=["handbook"]
    )
    sync_tenant: str = Field(min_length=1, description="whose documents", examples=["acme"])
    sync_allow_empty: bool = Field(
        False, description="the source may lose every document it held", examples=["true"]
    )
    internal_signing_key: Path | None = Field(
        None,
        description="PEM file with the Ed25519 private key that signs internal tokens",
        examples=["/etc/sluice/signing/internal.pem"],
    )

    @model_validator(mode="after")
    def _production_needs_a_key(self) -> "SyncSettings":
        if self.env == "production" and self.internal_signing_key is None:
            raise ValueError(
                f"{PREFIX}INTERNAL_SIGNING_KEY is missing: set it to a PEM file with the Ed25519"
                " private key that signs internal tokens, such as /etc/sluice/signing/internal.pem"
            )
        return self


def main() -> None:
    settings = load(SyncSettings)
    minter = Minter(signing_key(settings.internal_signing_key))
    roles = frozenset({INGEST_ROLE})
    caller = Caller(SUBJECT, settings.sync_tenant, AccessLevel.TEAM, frozenset(), roles)
    plan = Plan(settings.sync_source, retire=True, allow_empty=settings.sync_allow_empty)
    address = settings.ingest_target.removeprefix("dns:///")
    output = Output(as_json=True)
    token = partial(minter.mint, caller, "ingest")
    finish(output, partial(ingest.run, settings.sync_path, plan, address, token, output))


if __name__ == "__main__":
    typer.run(main)
