"""The CronJob's process, as its pod runs it, against an ingest stage."""

import asyncio
import json
import sys
from asyncio.subprocess import PIPE
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization

from chassis.identity import development_key
from chassis.settings import load
from deploy.sync import SyncSettings
from tests.cli.stage import served
from tests.deploy import cluster
from tests.deploy.cluster import ROOT


@pytest.fixture
def told(tmp_path: Path) -> dict[str, str]:
    """What the pod is told, with this machine's folders in place of its mounts."""
    key = development_key().private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    (tmp_path / "internal.pem").write_bytes(key)
    (tmp_path / "documents").mkdir()
    (tmp_path / "documents" / "a.md").write_text("# A\ntext")
    job = cluster.named("everything", "CronJob", "sync")
    pod = cluster.environment("everything", job)
    own = {name: value for name, value in pod.items() if "_TLS_" not in name}
    return own | {
        "SLUICE_INTERNAL_SIGNING_KEY": str(tmp_path / "internal.pem"),
        "SLUICE_SYNC_PATH": str(tmp_path / "documents"),
    }


async def run(environment: dict[str, str]) -> tuple[int | None, str, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-m", "deploy.sync", env=environment, stdout=PIPE, stderr=PIPE
    )
    async with asyncio.timeout(60):
        said, complained = await process.communicate()
    return process.returncode, said.decode(), complained.decode()


async def test_a_mounted_folder_is_brought_in_step_as_the_tenant_that_is_set(
    told: dict[str, str],
) -> None:
    async with served() as stage:
        target = {"SLUICE_INGEST_TARGET": f"dns:///{stage.address}", "PYTHONPATH": str(ROOT)}
        code, said, complained = await run(told | target)
    assert code == 0, complained
    report: dict[str, Any] = json.loads(said)
    assert (report["source"], report["added"]) == ("handbook", ["a.md"])
    (caller,) = stage.callers
    assert (caller.subject, caller.tenant) == ("folder-sync", "acme")
    assert caller.roles == {"ingest"}


def test_without_the_key_it_does_not_start(
    told: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    assert load(SyncSettings).sync_tenant == "acme"
    monkeypatch.delenv("SLUICE_INTERNAL_SIGNING_KEY")
    with pytest.raises(SystemExit):
        load(SyncSettings)
    assert "SLUICE_INTERNAL_SIGNING_KEY is missing" in capsys.readouterr().err
