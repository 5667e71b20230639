"""What Prometheus finds at a process."""

import asyncio
import contextlib
import re
from collections.abc import Callable

import httpx
import pytest

from chassis.errors import Exhausted
from tests.chassis.test_serve import ask, running, start

METHOD = 'rpc_method="sluice.retrieve.v1.RetrieveService/Retrieve"'


async def page(port: int) -> dict[str, float]:
    async with httpx.AsyncClient(trust_env=False, timeout=10) as client:
        reply = await client.get(f"http://127.0.0.1:{port}/metrics")
    assert reply.status_code == 200
    lines = (line.rpartition(" ") for line in reply.text.splitlines() if line[:1] != "#")
    return {name: float(value) for name, _, value in lines}


async def test_calls_are_counted_while_they_run_and_timed_by_how_they_ended(
    free_port: Callable[[], int],
) -> None:
    port, fetched = free_port(), free_port()
    async with running(port, SLUICE_METRICS_PORT=str(fetched)) as (process, channel):
        assert (await page(fetched))["sluice_rpc_in_flight"] == 0
        await ask(channel, "what")
        with pytest.raises(Exhausted):
            await ask(channel, "full")
        waiting = asyncio.create_task(ask(channel, "wait", top_k=30, limit=60))
        assert process.stdout
        assert await asyncio.wait_for(process.stdout.readline(), 10) == b"began\n"
        assert (await page(fetched))["sluice_rpc_in_flight"] == 1
        waiting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await waiting
        found = await page(fetched)
        while found["sluice_rpc_in_flight"]:
            found = await page(fetched)
    for code in ("OK", "RESOURCE_EXHAUSTED", "CANCELLED"):
        labels = f'{METHOD},rpc_response_status_code="{code}"'
        assert found[f"rpc_server_call_duration_seconds_count{{{labels}}}"] == 1
    bounds = {bound for name in found for bound in re.findall(r'le="([^"]+)"', name)}
    assert {0.005, 30, 600} <= {float(bound) for bound in bounds}


async def test_a_port_for_metrics_that_is_taken_is_named(free_port: Callable[[], int]) -> None:
    taken = await asyncio.start_server(lambda _reader, _writer: None, "127.0.0.1", free_port())
    port = taken.sockets[0].getsockname()[1]
    async with taken:
        refused = await start(free_port(), SLUICE_METRICS_PORT=str(port))
        _, said = await asyncio.wait_for(refused.communicate(), 20)
    assert refused.returncode == 3
    assert f'"port": {port}' in said.decode()
