"""What the suite on one machine consists of."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from chassis.certificates import Certificates
from chassis.settings import PREFIX, TrustSettings, complaints
from local import ports as port_numbers
from local import profile as profiles
from local import redis
from local.child import Part
from local.failures import Refused
from local.llm import bundle
from local.ports import LOOPBACK
from local.readiness import Probe, grpc_ready, http_ready, redis_ready
from local.run import Run
from local.supervisor import Policy, Report

STAGES = ("ingest", "retrieve", "assemble", "generate")
# A part whose address is set belongs to somebody else and is not started.
ADDRESSES = {
    "redis": f"{PREFIX}REDIS_URL",
    "jobs": f"{PREFIX}JOBS_REDIS_URL",
    "qdrant": f"{PREFIX}QDRANT_URL",
    "models": f"{PREFIX}EMBEDDING_BASE_URL",
    "llm": f"{PREFIX}ANSWER_BASE_URL",
}
MODULES = {
    "qdrant": "local.qdrant_node",
    "models": "local.models",
    "llm": "local.llm",
    "gateway": "gateway",
    "worker": "gateway.worker",
}
STORES = ("redis", "jobs")
# These go first where processors are short: what there is no room for is to be refused at once,
# however busy the others are with what was let in.
FIRST = ("gateway", *STORES)
STANDS_BACK = 10
READY_WITHIN = 60.0  # seconds; a cold disk and a busy machine included


class Suite(Run):
    """Every process of one profile over one data folder.

    `ports` is a number a name as in local.ports, "free" for any free ones, or None for what the
    settings say. `settings` win over the environment, which wins over the profile. Raises Refused.
    """

    def __init__(
        self,
        data: Path,
        *,
        profile: str = "embedded",
        ports: Mapping[str, int] | Literal["free"] | None = None,
        settings: Mapping[str, str] | None = None,
        report: Report = lambda _event: None,
    ) -> None:
        told = profiles.load(profile, {**os.environ, **(settings or {})})
        numbers = _numbers(ports, told)
        super().__init__(
            data,
            profile=profile,
            ports=numbers,
            tiers=tiers(data, numbers, environment(data, numbers, told)),
            report=report,
            policy=Policy(),
        )


def tiers(data: Path, ports: Mapping[str, int], told: Mapping[str, str]) -> list[list[Part]]:
    """The parts in the order in which they can become ready.

    Raises Refused without a Redis, or without the language model where the profile has one.
    """
    names = [[name for name in ADDRESSES if name in ports], STAGES, ["gateway", "worker"]]
    return [[part(name, data, ports, told) for name in tier] for tier in names]


def part(name: str, data: Path, ports: Mapping[str, int], told: Mapping[str, str]) -> Part:
    port = ports[name]
    return Part(
        name=name,
        command=_command(name, data, port),
        environment={**told, **_own_ports(name, ports)},
        port=port,
        probe=probe(name, port, certificates(told)),
        ready_within=READY_WITHIN,
        nice=0 if name in FIRST else STANDS_BACK,
    )


def environment(
    data: Path, ports: Mapping[str, int], settings: Mapping[str, str]
) -> dict[str, str]:
    """What every process is told; each reads its own part of it."""
    outside = {key: text for key, text in os.environ.items() if not key.startswith(PREFIX)}
    return {
        "OMP_NUM_THREADS": "1",  # the model's spinning threads starve everybody else
        **outside,
        "PYTHONUNBUFFERED": "1",
        **_addresses(ports),
        **settings,
        f"{PREFIX}QDRANT_DATA": str(data / "qdrant"),
        **{port_numbers.setting(name): str(port) for name, port in ports.items()},
    }


def _command(name: str, data: Path, port: int) -> tuple[str, ...]:
    if name in STORES:
        return redis.command(redis.server_binary(), port, data / name, at_once=name == "jobs")
    if name == "llm":
        bundle.weights()  # what is missing is told before anything starts
    # -P: a folder named `gateway` where the user happens to stand must not be run instead.
    return (sys.executable, "-P", "-m", MODULES.get(name, f"services.{name}"))


def _own_ports(name: str, ports: Mapping[str, int]) -> dict[str, str]:
    """A process of the product calls its own port PORT, whichever process it is."""
    if name == "gateway":
        numbers = {"PORT": ports["gateway_grpc"], "HTTP_PORT": ports["gateway"]}
    elif name in {*STAGES, "worker"}:
        numbers = {"PORT": ports[name]}
    else:
        numbers = {}
    return {f"{PREFIX}{variable}": str(number) for variable, number in numbers.items()}


def _addresses(ports: Mapping[str, int]) -> dict[str, str]:
    known = {name: f"{LOOPBACK}:{port}" for name, port in ports.items()}
    shapes = {
        "redis": "redis://{}/0",
        "jobs": "redis://{}/0",
        "qdrant": "http://{}",
        "models": "http://{}/v1",
        "llm": "http://{}/v1",
    }
    stores = {
        ADDRESSES[name]: shape.format(known[name])
        for name, shape in shapes.items()
        if name in known
    }
    targets = {f"{PREFIX}{name.upper()}_TARGET": f"dns:///{known[name]}" for name in STAGES}
    return stores | targets


def _numbers(
    ports: Mapping[str, int] | Literal["free"] | None, settings: Mapping[str, str]
) -> dict[str, int]:
    if ports == "free":
        chosen = port_numbers.all_free()
    elif ports is None:
        chosen = port_numbers.chosen(settings)
    else:
        chosen = dict(ports)
    return {name: port for name, port in chosen.items() if _is_ours(name, settings)}


def _is_ours(name: str, settings: Mapping[str, str]) -> bool:
    if name == "llm" and settings.get(f"{PREFIX}ANSWER_MODEL") != bundle.MODEL:
        return False  # nobody gets the small model without asking for it by name
    return ADDRESSES.get(name) not in settings


def certificates(told: Mapping[str, str]) -> Certificates | None:
    """What the processes show each other; None for plain connections. Raises Refused."""
    names = ("tls_certificate", "tls_key", "tls_authority")
    known: dict[str, Any] = {name: told.get(f"{PREFIX}{name.upper()}") for name in names}
    try:
        return TrustSettings(**known).certificates
    except ValidationError as error:
        raise Refused("\n".join(complaints(TrustSettings, error))) from error


def probe(name: str, port: int, certificates: Certificates | None = None) -> Probe:
    """How to ask the process of that name whether it is ready."""
    if name in STORES:
        return redis_ready(port)
    if name == "llm":
        return http_ready(port, "/health")
    if name in {"models", "gateway"}:
        return http_ready(port)
    ours = name in {*STAGES, "worker"}
    return grpc_ready(port, certificates=certificates if ours else None)
