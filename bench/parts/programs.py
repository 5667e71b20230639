"""Our own programs as processes, from their start until they are ready."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack

from local.readiness import Probe, grpc_ready

STARTS_WITHIN = 120.0  # seconds
LOOK_EVERY = 0.01


def start(
    ending: ExitStack, words: Sequence[str], settings: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    """`python -m` with those words, killed at the end. What it writes is read by nobody."""
    process = subprocess.Popen(  # noqa: S603 - our own programs
        [sys.executable, "-m", *words],
        env={**os.environ, **settings},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    ending.callback(process.wait)
    ending.callback(process.kill)
    return process


def await_ready(process: subprocess.Popen[bytes], probe: Probe) -> None:
    deadline = time.monotonic() + STARTS_WITHIN
    while not asyncio.run(_ready(probe)):
        if process.poll() is not None or time.monotonic() > deadline:
            raise SystemExit(f"does not start: {process.args!r}")
        time.sleep(LOOK_EVERY)


def started(
    ending: ExitStack, words: Sequence[str], settings: Mapping[str, str], port: int
) -> subprocess.Popen[bytes]:
    """One that is ready to be called at that port."""
    process = start(ending, words, settings)
    await_ready(process, grpc_ready(port))
    return process


async def _ready(probe: Probe) -> bool:
    return await probe()
