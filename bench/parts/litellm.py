"""A LiteLLM proxy before the scripted provider, from an environment of its own.

Its packages ask for other versions than ours: `make setup-bench` installs them apart.
"""

import json
import os
import secrets
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx

from local import ports

PROXY = Path(".venv-bench/bin/litellm")
STARTS_WITHIN = 400.0  # seconds
ENDS_WITHIN = 30.0
LOOK_EVERY = 0.2
# Nothing is asked of the internet, and nothing told to it.
QUIET = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_MODE": "PRODUCTION"}


@dataclass(frozen=True, slots=True)
class Proxy:
    """`key` is what it asks its callers for."""

    url: str
    key: str
    pid: int


def installed() -> bool:
    return PROXY.exists()


@contextmanager
def running(provider: int) -> Iterator[Proxy]:
    """Ready to ask the provider at that port."""
    (port,) = ports.free(1)
    key = f"sk-{secrets.token_hex(32)}"
    url = f"http://{ports.LOOPBACK}:{port}"
    with TemporaryDirectory() as name:
        settings, log = Path(name, "config.yaml"), Path(name, "log")
        settings.write_text(json.dumps(_settings(provider, key)))
        words = ["--config", str(settings), "--host", ports.LOOPBACK, "--port", str(port)]
        with log.open("wb") as output:
            process = subprocess.Popen(  # noqa: S603 - what the benchmark's own target installed
                [PROXY, *words], env={**os.environ, **QUIET}, stdout=output, stderr=output
            )
        try:
            _await(url, process, log)
            yield Proxy(url, key, process.pid)
        finally:
            process.terminate()
            try:
                process.wait(ENDS_WITHIN)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _settings(provider: int, key: str) -> dict[str, object]:
    endpoint = {
        "model": "openai/scripted",
        "api_base": f"http://{ports.LOOPBACK}:{provider}/v1",
        "api_key": "-",
    }
    return {
        "model_list": [{"model_name": "scripted", "litellm_params": endpoint}],
        "litellm_settings": {"telemetry": False},
        "general_settings": {"master_key": key},
    }


def _await(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + STARTS_WITHIN
    while not _answers(url):
        if process.poll() is not None or time.monotonic() > deadline:
            raise SystemExit(f"LiteLLM does not start: {log.read_text()}")
        time.sleep(LOOK_EVERY)


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health/liveliness", timeout=2).status_code == httpx.codes.OK
    except httpx.HTTPError:
        return False
