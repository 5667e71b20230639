"""A real process with one RPC: what callers see of its life and of its errors."""

import asyncio
import os
import re
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from chassis import channels, errors, status
from chassis.deadlines import Deadline, enter
from chassis.identity import AccessLevel, Caller, Minter, development_key
from sluice.ingest.v1 import ingest_pb2
from sluice.retrieve.v1 import retrieve_pb2, retrieve_pb2_grpc

STAGE = Path(__file__).with_name("stage.py")
SERVICE = "sluice.retrieve.v1.RetrieveService"
CALLER = Caller("ana", "acme", AccessLevel.TEAM, frozenset({"sre"}), frozenset())


async def start(port: int, **env: str) -> Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        str(STAGE),
        env={**os.environ, "SLUICE_PORT": str(port), "SLUICE_ENV": "development", **env},
        stdout=PIPE,
        stderr=PIPE,
    )


async def healthy(channel: grpc.aio.Channel, service: str) -> int:
    stub = health_pb2_grpc.HealthStub(channel)
    request = health_pb2.HealthCheckRequest(service=service)
    async with asyncio.timeout(10):
        async for response in stub.Watch(request, wait_for_ready=True):
            if response.status == health_pb2.HealthCheckResponse.SERVING:
                return int(response.status)
    raise AssertionError("the health stream ended")


@asynccontextmanager
async def running(port: int, **env: str) -> AsyncIterator[tuple[Process, grpc.aio.Channel]]:
    process = await start(port, **env)
    channel = channels.connect(f"dns:///127.0.0.1:{port}", service=SERVICE, idempotent=True)
    try:
        await healthy(channel, "readiness")
        yield process, channel
    finally:
        await channel.close()
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def ask(
    channel: grpc.aio.Channel,
    question: str,
    token: str | None = None,
    limit: float = 5,
    top_k: int = 0,
) -> retrieve_pb2.RetrieveResponse:
    stub = retrieve_pb2_grpc.RetrieveServiceStub(channel)
    request = retrieve_pb2.RetrieveRequest(question=question, top_k=top_k)
    if token is None:
        token = Minter(development_key()).mint(CALLER, "retrieve")
    return await channels.call(stub.Retrieve, request, stage="retrieve", token=token, limit=limit)


async def test_the_caller_reaches_the_handler_and_errors_come_back_typed(
    free_port: Callable[[], int],
) -> None:
    async with running(free_port()) as (_, channel):
        assert (await ask(channel, "who")).embedding_profile == "acme/team"
        with pytest.raises(errors.Exhausted) as full:
            await ask(channel, "full")
        assert (full.value.reason, full.value.retry_after) == ("ROOM", 1.25)
        assert full.value.message == "retrieve: no room"
        with pytest.raises(errors.Internal) as bug:
            await ask(channel, "bug")
        assert "secret" not in bug.value.message


async def test_a_token_that_does_not_hold_is_refused(free_port: Callable[[], int]) -> None:
    refusals = {
        "": "UNAUTHENTICATED",
        "nonsense": "BAD_TOKEN",
        Minter(development_key()).mint(CALLER, "generate"): "WRONG_AUDIENCE",
    }
    async with running(free_port()) as (_, channel):
        for token, reason in refusals.items():
            with pytest.raises(errors.Unauthenticated) as refused:
                await ask(channel, "who", token=token)
            assert refused.value.reason == reason


async def test_deadlines_shrink_and_end_the_call(free_port: Callable[[], int]) -> None:
    async with running(free_port()) as (_, channel):
        enter(Deadline.after(2))
        left = (await ask(channel, "who", limit=5)).epoch
        assert 1_500 < left < 2_000
        enter(Deadline.after(0.4))
        with pytest.raises(errors.DeadlineExceeded):
            await ask(channel, "hang")
        enter(Deadline.after(0))
        with pytest.raises(errors.DeadlineExceeded):
            await ask(channel, "who")


async def test_sigterm_lets_calls_finish_and_exits_0(free_port: Callable[[], int]) -> None:
    async with running(free_port()) as (process, channel):
        call = asyncio.create_task(ask(channel, "wait", top_k=1))
        assert process.stdout is not None
        assert await asyncio.wait_for(process.stdout.readline(), 5) == b"began\n"
        process.send_signal(signal.SIGTERM)
        assert (await call).embedding_profile == "acme/team"
        _, logs = await asyncio.wait_for(process.communicate(), 10)
        assert process.returncode == 0
        assert b'"event": "stopped"' in logs


async def test_health_and_reflection_need_no_token(free_port: Callable[[], int]) -> None:
    async with running(free_port()) as (_, channel):
        serving = health_pb2.HealthCheckResponse.SERVING
        for name in ("", "liveness", "readiness", "nothing"):
            assert await healthy(channel, name) == serving
        stub = reflection_pb2_grpc.ServerReflectionStub(channel)
        request = reflection_pb2.ServerReflectionRequest(list_services="")
        listed = [answer async for answer in stub.ServerReflectionInfo(iter([request]))]
        assert SERVICE in {entry.name for entry in listed[0].list_services_response.service}


async def test_a_used_port_is_named(free_port: Callable[[], int]) -> None:
    port = free_port()
    async with running(port):
        second = await start(port)
        _, logs = await asyncio.wait_for(second.communicate(), 10)
        assert second.returncode == 3
        assert f'"port": {port}'.encode() in logs


@pytest.mark.parametrize(
    ("env", "line"),
    [
        ({"SLUICE_ENV": "production"}, "SLUICE_INTERNAL_VERIFY_KEY is missing"),
        ({"SLUICE_INTERNAL_VERIFY_KEY": __file__}, "SLUICE_INTERNAL_VERIFY_KEY: .*for example"),
        ({"SLUICE_INTERNAL_VERIFY_KEY": "/none.pem"}, "cannot read /none.pem: No such file"),
        ({"SLUICE_GRACE_SECONDS": "soon"}, r"SLUICE_GRACE_SECONDS: .*for example"),
        ({"SLUICE_ENV": "dev"}, r"SLUICE_ENV: .*for example SLUICE_ENV=development"),
    ],
)
async def test_wrong_settings_stop_the_start_by_name(
    free_port: Callable[[], int], env: dict[str, str], line: str
) -> None:
    process = await start(free_port(), **env)
    _, logs = await asyncio.wait_for(process.communicate(), 10)
    assert process.returncode == 2
    assert re.search(line, logs.decode())


async def test_a_stage_that_is_gone_is_unavailable_and_found_again(
    free_port: Callable[[], int],
) -> None:
    port = free_port()
    async with running(port) as (process, channel):
        process.kill()
        await process.wait()
        with pytest.raises(errors.Unavailable) as gone:
            await ask(channel, "who")
        assert gone.value.reason == "STAGE_UNAVAILABLE"
        async with running(port):
            await healthy(channel, "readiness")
            assert (await ask(channel, "who")).embedding_profile == "acme/team"


async def test_bytes_in_a_stream_that_are_no_message_are_the_callers_to_mend(
    free_port: Callable[[], int],
) -> None:
    good = ingest_pb2.PutDocumentRequest(data=b"a").SerializeToString()
    bearer = (("authorization", f"Bearer {Minter(development_key()).mint(CALLER, 'retrieve')}"),)
    async with running(free_port()) as (process, channel):
        put: Any = channel.stream_unary("/sluice.ingest.v1.IngestService/PutDocument")
        for sent, field in ((b"\xff\xff", ""), (b"\x0a\x03\x0a\x01\xff", "header.document_id")):
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await put(iter([good, sent]), timeout=5, metadata=bearer)
            failure = status.decode(refused.value, "ingest")
            assert isinstance(failure, errors.InvalidInput)
            assert failure.field == field
        counted = await put(iter([good, good]), timeout=5, metadata=bearer)
        assert ingest_pb2.PutDocumentResponse.FromString(counted).chunks == 2
        process.terminate()
        _, logs = await asyncio.wait_for(process.communicate(), 10)
        assert b"Traceback" not in logs
        assert b"rpc_failed" not in logs


async def test_who_is_still_writing_hears_the_refusal_as_it_is(
    free_port: Callable[[], int],
) -> None:
    more = [ingest_pb2.PutDocumentRequest(data=b"a" * 900).SerializeToString()] * 20
    async with running(free_port()) as (_, channel):
        put: Any = channel.stream_unary("/sluice.ingest.v1.IngestService/PutDocument")
        calls = [put(iter([b"\xff\xff", *more]), timeout=20) for _ in range(400)]
        ends = Counter([await call.code() for call in calls])
    assert ends == {grpc.StatusCode.UNAUTHENTICATED: 400}


async def test_bytes_that_ask_for_no_health_are_the_callers_to_mend(
    free_port: Callable[[], int],
) -> None:
    async with running(free_port()) as (_, channel):
        health = "/grpc.health.v1.Health"
        raw: Any = channel
        checked = raw.unary_unary(f"{health}/Check")(b"\xff", timeout=5)
        watched = raw.unary_stream(f"{health}/Watch")(b"\xff", timeout=5)
        name = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
        reflected = raw.stream_stream(name)(iter([b"\xff"]), timeout=5)
        ends = [await call.code() for call in (checked, watched, reflected)]
        told = await checked.details()
    assert ends == [grpc.StatusCode.INVALID_ARGUMENT] * 3
    assert told == "the request is no valid message"
