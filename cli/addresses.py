"""Where the suite is: what the caller says, else what runs on the data folder, else defaults."""

import os
from pathlib import Path

from chassis.certificates import Certificates
from local import state, suite
from local.ports import LOOPBACK, told

GATEWAY_VARIABLE = "SLUICE_GATEWAY_URL"
INGEST_VARIABLE = "SLUICE_INGEST_TARGET"


def certificates() -> Certificates | None:
    """What this environment says to show to stages; None for plain connections. Raises Refused."""
    return suite.certificates(os.environ)


def ports(data: Path) -> dict[str, int]:
    """Ports of the suite on the data folder; when none runs there, as set or by default.

    Raises Refused for a setting that is no port.
    """
    running = state.read(data)
    return running.ports if running else told(os.environ)


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
