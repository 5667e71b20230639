"""What this machine has to have: folders and keys for the right eyes only, free ports, a Redis."""

import os
import stat
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from chassis.certificates import Certificates
from cli.doctor.finding import Finding, ok, problem, warning
from cli.doctor.setup import Setup
from gateway.pipeline_settings import PipelineSettings
from local import ports, redis
from local.failures import Refused
from local.suite import ADDRESSES

SOON = timedelta(days=7)
FOLDERS = ("", "logs", "qdrant", "redis", "jobs")


def look(setup: Setup) -> Iterator[Finding]:
    if setup.is_local:
        yield from (found for name in FOLDERS for found in folder(setup.data / name))
        if setup.running is None:
            yield from _to_start(setup)
    for file in sorted(set(_secret_files(setup))):
        yield secret(file)
    certificates = (one.certificates for one in setup.settings.values())
    for held in [one for one in certificates if one is not None][:1]:
        yield certificate(held)


def folder(path: Path) -> Iterator[Finding]:
    """Nothing of a folder that is not there: it is made when it is needed."""
    if not path.exists() and os.access(_first_there(path), os.W_OK):
        return
    if not path.is_dir() or not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        mend = f"make it a folder of the user who starts the suite: chown and chmod 700 {path}"
        yield problem(f"folder {path}", "cannot be read and written here", mend)
    elif stat.S_IMODE(path.stat().st_mode) & 0o077:
        yield warning(f"folder {path}", "is open to other users", f"chmod 700 {path}")
    else:
        yield ok(f"folder {path}", "readable and writable, for its owner only")


def _first_there(path: Path) -> Path:
    return next(one for one in path.absolute().parents if one.exists())


def _to_start(setup: Setup) -> Iterator[Finding]:
    """What starting the suite needs."""
    yield warning("suite", f"none runs on {setup.data}", "start it with `sluice up`")
    for name, port in setup.ports.items():
        if ADDRESSES.get(name) in setup.said or name in ports.OPTIONAL:
            continue
        if not ports.is_free(port):
            mend = f"free it, or set {ports.setting(name)}={ports.free(1)[0]}"
            yield problem(f"port {port}", f"{name}'s, but somebody listens on it", mend)
    try:
        yield ok("redis server", str(redis.server_binary()))
    except Refused as error:
        yield problem("redis server", error.message, "install valkey-server, or set its address")


def _secret_files(setup: Setup) -> Iterator[Path]:
    for one in setup.settings.values():
        if one.tls_key is not None:
            yield one.tls_key
        if isinstance(one, PipelineSettings) and one.internal_signing_key is not None:
            yield one.internal_signing_key


def secret(path: Path) -> Finding:
    """The group may read: Kubernetes hands secrets to a pod's group."""
    if stat.S_IMODE(path.stat().st_mode) & 0o007:
        return problem(f"key {path}", "every user may read it", f"chmod 600 {path}, then renew it")
    return ok(f"key {path}", "not for every user")


def certificate(held: Certificates) -> Finding:
    expires = held.current().expires
    left = expires - datetime.now(UTC)
    said = f"valid until {expires:%Y-%m-%d %H:%M} UTC"
    if left < SOON:
        return warning("certificate", said, "renew the files; no restart is needed")
    return ok("certificate", said)
