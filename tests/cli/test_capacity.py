"""`sluice capacity`: the picture of a snapshot, once, live, and for programs."""

import asyncio
import copy
import os
import signal
import socket
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from rich.console import Console
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from cli import exits
from cli.capacity import BAR, History, bar, sparkline, view
from gateway.identity import development_issuer
from tests.cli.test_command import sluice


def room(share: float, places: int) -> dict[str, Any]:
    return {
        "requests": {"limit": 100.0, "size": 20.0, "level": 20.0 * share},
        "tokens": {"limit": 60_000.0, "size": 3_000.0, "level": 3_000.0 * share},
        "places": places,
    }


SEEN: dict[str, Any] = {
    "gateway": {
        "mode": "shared",
        "in_flight": 2,
        "max_in_flight": 64,
        "waiting": 0,
        "shared_in_flight": 7,
        "shared_max_in_flight": 256,
        "refusals": {"NO_ROOM": 3, "ALLOWANCE_SUBJECT": 1},
    },
    "pools": [
        {
            "name": "answers",
            "mode": "shared",
            "pool": room(0.5, 16),
            "batch": room(0.25, 12),
            "in_flight": {"interactive": 3, "batch": 1},
            "waiting": 0,
            "cooldown": 0.0,
            "opens_in": 0.0,
            "ramp": 1.0,
        }
    ],
}


def drawn(seen: dict[str, Any], history: History | None = None, problem: str = "") -> list[str]:
    console = Console(width=120)
    with console.capture() as captured:
        console.print(view(seen, history or History(), problem))
    return [line.rstrip() for line in captured.get().splitlines()]


def test_levels_places_and_refusals_are_drawn() -> None:
    lines = drawn(SEEN)
    half, quarter = bar(0.5), bar(0.25)
    assert lines[0] == "gateway  shared"
    assert f"refused{' ' * 35}NO_ROOM 3, ALLOWANCE_SUBJECT 1" in lines
    assert "answers  shared" in lines
    assert f"requests        {half}  10 of 20 now, 100 a minute" in lines
    assert f"batch tokens    {quarter}  750 of 3,000 now, 60,000 a minute" in lines
    assert f"in flight       {quarter}  4 of 16" in lines
    assert lines[-1].strip() == "interactive 3, batch 1"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"cooldown": 2.5}, "answers  shared  cools down for 2.5 s after a throttle"),
        ({"ramp": 0.4}, "answers  shared  40% of the refill flows after a throttle"),
        ({"opens_in": 3}, "answers  shared  opens 3.0 s after its first use"),
        ({"waiting": 2}, "answers  shared  2 wait for a start"),
        ({"mode": "local_share"}, "answers  local share"),
    ],
)
def test_what_keeps_a_pool_from_flowing_is_said(changes: dict[str, Any], words: str) -> None:
    seen = copy.deepcopy(SEEN)
    seen["pools"][0] |= changes
    assert words in drawn(seen)


def test_a_gateway_without_redis_is_drawn_without_what_it_cannot_know() -> None:
    seen = copy.deepcopy(SEEN)
    seen["gateway"] |= {"mode": "local_share", "shared_in_flight": None, "waiting": 4}
    lines = drawn(seen, problem="nothing \x1b[2Janswers")
    assert lines[0] == "gateway  local share"
    assert not any(line.startswith("all gateways") for line in lines)
    assert any(line.split() == ["waiting", "4"] for line in lines)
    assert lines[-1] == "nothing \N{REPLACEMENT CHARACTER}[2Janswers"


def test_the_history_keeps_in_flight_and_what_was_refused_between_two_looks() -> None:
    history, seen = History(), copy.deepcopy(SEEN)
    for refused, in_flight in ((3, 1), (5, 2), (5, 4), (1, 0)):
        seen["gateway"]["refusals"] = {"NO_ROOM": refused}
        seen["gateway"]["in_flight"] = in_flight
        history.add(seen)
    # The last look met another gateway, or one that was started anew.
    assert list(history.refused) == [0, 2, 0, 0]
    assert list(history.in_flight) == [1, 2, 4, 0]
    assert list(history.pools["answers"]) == [4, 4, 4, 4]
    assert any(line.endswith(sparkline([1, 2, 4, 0])) for line in drawn(seen, history))


def test_bars_and_sparklines_fill_what_they_should() -> None:
    assert bar(0) == "·" * BAR
    assert bar(1) == bar(7) == "█" * BAR
    assert bar(-1) == bar(0)
    assert bar(1 / 16, 2) == "▏·"
    assert {len(bar(n / 100)) for n in range(101)} == {BAR}
    assert sparkline([0, 0]) == "▁▁"
    assert sparkline([0, 5, 10]) == "▁▅█"
    assert sparkline([]) == ""


@dataclass(slots=True)
class Gateway:
    """Shows `body` with `status`; keeps the tokens it saw."""

    url: str = ""
    status: int = 200
    body: object = field(default_factory=lambda: SEEN)
    tokens: list[str] = field(default_factory=list)
    looked: asyncio.Event = field(default_factory=asyncio.Event)

    async def capacity(self, request: Request) -> Response:
        self.tokens.append(request.headers["authorization"].removeprefix("Bearer "))
        if len(self.tokens) > 2:
            self.looked.set()
        return JSONResponse(self.body, status_code=self.status)


@pytest.fixture
async def gateway() -> AsyncIterator[Gateway]:
    listener, gateway = socket.create_server(("127.0.0.1", 0)), Gateway()
    gateway.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    app = Starlette(routes=[Route("/v1/capacity", gateway.capacity)])
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off"))
    serving = asyncio.create_task(server.serve([listener]))
    yield gateway
    server.should_exit = True
    await serving


async def test_one_snapshot_is_one_json_document_asked_for_as_an_operator(
    tmp_path: Path, gateway: Gateway
) -> None:
    options = ("--json", "--tenant", "acme")
    result = await sluice(tmp_path, "capacity", *options, SLUICE_GATEWAY_URL=gateway.url)
    assert (result.code, result.document) == (exits.OK, SEEN)
    caller = development_issuer().verify(gateway.tokens[0])
    assert (caller.tenant, caller.roles) == ("acme", frozenset({"operator"}))


async def test_without_a_terminal_the_levels_are_shown_once(
    tmp_path: Path, gateway: Gateway
) -> None:
    result = await sluice(tmp_path, "capacity", SLUICE_GATEWAY_URL=gateway.url)
    assert (result.code, result.err) == (exits.OK, "")
    assert result.out.startswith("gateway  shared")
    assert len(gateway.tokens) == 1


async def test_who_may_not_look_is_told_so(tmp_path: Path, gateway: Gateway) -> None:
    gateway.status, gateway.body = 403, {"detail": "this needs the role operator", "reason": "R"}
    result = await sluice(tmp_path, "capacity", SLUICE_GATEWAY_URL=gateway.url)
    assert (result.code, result.err) == (exits.NOT_ALLOWED, "this needs the role operator\n")


async def test_the_live_view_looks_again_outlives_an_outage_and_ends_well_at_ctrl_c(
    tmp_path: Path, gateway: Gateway
) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "cli.main", "capacity", "--watch"),
        env={**os.environ, "SLUICE_GATEWAY_URL": gateway.url},
        cwd=tmp_path,
        stdout=PIPE,
        stderr=PIPE,
    )
    async with asyncio.timeout(60):
        await gateway.looked.wait()
        gateway.status, gateway.body = 503, {"detail": "not now", "reason": "STOPPING"}
        gateway.looked.clear()
        await gateway.looked.wait()
        process.send_signal(signal.SIGINT)
        out, err = await process.communicate()
    assert (process.returncode, err.decode()) == (exits.OK, "")
    assert "gateway  shared" in out.decode()
