"""Where the suite is: what the caller says, else what runs on the data folder, else defaults."""

import os
from pathlib import Path

from local import state
from local.ports import LOOPBACK, told

GATEWAY_VARIABLE = "SLUICE_GATEWAY_URL"
INGEST_VARIABLE = "SLUICE_INGEST_TARGET"


def ports(data: Path) -> dict[str, int]:
    """Ports of the suite on the data folder; when none runs there, as set or by default.

    Raises Refused for a setting that is no port.
    """
    suite = state.read(data)
    return suite.ports if suite else told(os.environ)


def gateway(data: Path) -> str:
    """URL of the gateway, without a slash at its end."""
    said = os.environ.get(GATEWAY_VARIABLE, "")
    return said.rstrip("/") or f"http://{LOOPBACK}:{ports(data)['gateway']}"


def ingest(data: Path) -> str:
    """Host and port of ingest."""
    return stage("ingest", data)


def stage(name: str, data: Path) -> str:
    """Host and port of a stage."""
    said = os.environ.get(f"SLUICE_{name.upper()}_TARGET", "")
    return said.removeprefix("dns:///") or f"{LOOPBACK}:{ports(data)[name]}"
