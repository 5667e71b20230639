"""What several gateways grant together over one Redis, while it answers and while it does not."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import grpc
import httpx
import pytest
from google.rpc.error_details_pb2 import ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status
from redis import Redis

from sluice.answer.v1 import answer_pb2
from tests.capacity.server import Server
from tests.gateway.house import (
    ALL,
    QUESTION,
    House,
    Stage,
    gateway,
    served,
    token,
    until,
)

# Hardly anything is refilled while a test runs.
SLOW = {
    "SUBJECT_REQUESTS_PER_MINUTE": "5.2",
    "SUBJECT_REQUEST_BURST": "5",
    "TENANT_REQUESTS_PER_MINUTE": "12.2",
    "TENANT_REQUEST_BURST": "12",
}
LEASE = 1.0


@asynccontextmanager
async def gateways(
    folder: Path, number: int, told: Mapping[str, str]
) -> AsyncIterator[tuple[list[House], dict[str, Stage]]]:
    async with served(*ALL) as behind, AsyncExitStack() as stack:
        opening = [
            stack.enter_async_context(gateway(behind, folder / f"log-{name}", told))
            for name in range(number)
        ]
        yield [await one for one in opening], behind


def sent_by(subject: str, tenant: str = "acme") -> dict[str, str]:
    return {"Authorization": f"Bearer {token(subject, tenant)}"}


async def statuses(houses: list[House], times: int, **headers: str) -> list[int]:
    asking = [houses[n % len(houses)].ask(None, **headers) for n in range(times)]
    return sorted(response.status_code for response in await asyncio.gather(*asking))


async def test_two_gateways_grant_a_subject_and_a_tenant_exactly_their_bursts(
    tmp_path: Path, redis: Redis, redis_server: Server
) -> None:
    async with gateways(tmp_path, 2, {**SLOW, "REDIS_URL": redis_server.url}) as (houses, behind):
        assert await statuses(houses, 9, **sent_by("ana")) == [200] * 5 + [429] * 4
        assert await statuses(houses, 9, **sent_by("bo")) == [200] * 5 + [429] * 4
        # What refused subjects asked was not charged to their tenant: two of twelve are left.
        assert await statuses(houses, 5, **sent_by("cleo")) == [200] * 2 + [429] * 3
        assert await statuses(houses, 5, **sent_by("ana", "globex")) == [200] * 5
        assert len(behind["retrieve"].seen) == 17
        refused = await houses[0].ask(None, **sent_by("cleo"))
        assert refused.json()["reason"] == "ALLOWANCE_TENANT"
        assert refused.headers["content-type"] == "application/problem+json"


FIELD = re.compile(r'"(?P<name>\w+)"(?P<parameters>(;[a-z]+=\d+)+)')


def parsed(field: str) -> dict[str, dict[str, int]]:
    """A structured field that is a list of strings with whole numbers for parameters."""
    found = {}
    for item in field.split(", "):
        match = FIELD.fullmatch(item)
        assert match, field
        pairs = (one.split("=") for one in match["parameters"][1:].split(";"))
        found[match["name"]] = {name: int(number) for name, number in pairs}
    return found


async def test_granted_and_refused_answers_say_where_the_caller_stands(
    tmp_path: Path, redis: Redis, redis_server: Server
) -> None:
    async with gateways(tmp_path, 1, {**SLOW, "REDIS_URL": redis_server.url}) as ([house], _):
        first = await house.ask()
        assert parsed(first.headers["ratelimit-policy"]) == {
            "subject": {"q": 5, "w": 60},
            "tenant": {"q": 12, "w": 60},
        }
        left = parsed(first.headers["ratelimit"])
        assert (left["subject"]["r"], left["tenant"]["r"]) == (4, 11)
        assert 298 <= left["subject"]["t"] <= 300
        *_, refused = [await house.ask() for _ in range(5)]
        said = parsed(refused.headers["ratelimit"])["subject"]
        assert (refused.status_code, said["r"]) == (429, 0)
        assert said["t"] == int(refused.headers["retry-after"])
        assert 0 <= said["t"] - refused.json()["retry_after"] < 1
        assert "ratelimit" not in (await house.http.get("/healthz")).headers
        with pytest.raises(grpc.aio.AioRpcError) as failure:
            await house.answers.Ask(
                answer_pb2.AskRequest(question=QUESTION),
                metadata=[("authorization", f"Bearer {token()}")],
                timeout=10,
            )
        assert failure.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        info, retry = details(failure.value)
        assert info.reason == "ALLOWANCE_SUBJECT"
        assert 0 < retry.retry_delay.ToNanoseconds() / 1e9 <= refused.json()["retry_after"]


def details(failure: grpc.aio.AioRpcError) -> tuple[ErrorInfo, RetryInfo]:
    packed = Status.FromString(
        bytes(dict(failure.trailing_metadata() or ())["grpc-status-details-bin"])
    )
    info, retry = ErrorInfo(), RetryInfo()
    for kind in (info, retry):
        assert any(detail.Unpack(kind) for detail in packed.details)
    return info, retry


async def test_the_wait_that_a_refusal_names_is_enough_and_no_more_than_needed(
    tmp_path: Path, redis: Redis, redis_server: Server
) -> None:
    told = {"SUBJECT_REQUESTS_PER_MINUTE": "101", "SUBJECT_REQUEST_BURST": "1"}
    async with gateways(tmp_path, 1, {**told, "REDIS_URL": redis_server.url}) as ([house], _):
        assert (await house.ask()).status_code == 200
        sent = time.monotonic()
        refused = await house.ask()
        received = time.monotonic()
        assert refused.status_code == 429
        wait = refused.json()["retry_after"]
        assert 0 < wait <= 0.6
        granted: list[float] = []
        while not granted:
            asked = time.monotonic()
            if (await house.ask()).status_code == 200:
                granted.append(time.monotonic())
            else:
                assert asked < received + wait
        assert granted[0] >= sent + wait


async def test_shape_and_identity_come_before_the_allowance_and_it_before_the_room(
    tmp_path: Path, redis: Redis, redis_server: Server
) -> None:
    told = {
        "SUBJECT_REQUESTS_PER_MINUTE": "2.2",
        "SUBJECT_REQUEST_BURST": "2",
        "MAX_IN_FLIGHT": "1",
        "REDIS_URL": redis_server.url,
    }
    async with gateways(tmp_path, 1, told) as ([house], behind):
        bad_token = {"Authorization": "Bearer nonsense"}
        metadata = [("authorization", f"Bearer {token()}")]
        for _ in range(3):
            assert (await house.ask({"question": ""})).status_code == 400
            assert (await house.ask(None, **bad_token)).status_code == 401
            with pytest.raises(grpc.aio.AioRpcError) as failure:
                await house.answers.Ask(answer_pb2.AskRequest(), metadata=metadata, timeout=10)
            assert failure.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert redis.keys("sluice:{allowance:*}:subject:*") == []
        release = behind["generate"].hold()
        asking = asyncio.create_task(house.ask())
        await behind["generate"].reached()
        assert (await house.ask()).json()["reason"] == "NO_ROOM"
        assert (await house.ask()).json()["reason"] == "ALLOWANCE_SUBJECT"
        assert (await house.ask({"question": ""}, **bad_token)).status_code == 400
        assert (await house.ask(None, **bad_token)).status_code == 401
        release.set()
        assert (await asking).status_code == 200


async def test_while_redis_stands_still_a_process_grants_its_share_and_comes_back_by_itself(
    tmp_path: Path, own_redis: Server
) -> None:
    told = {
        "SUBJECT_REQUESTS_PER_MINUTE": "4.4",
        "SUBJECT_REQUEST_BURST": "4",
        "MAX_PROCESSES": "2",
        "ADMISSION_DECISION_SECONDS": "0.05",
        "REDIS_URL": own_redis.url,
    }
    async with gateways(tmp_path, 1, told) as ([house], _):

        def policy(response: httpx.Response) -> int:
            return parsed(response.headers["ratelimit-policy"])["subject"]["q"]

        async def shared() -> bool:
            return policy(await house.ask(None, **sent_by("probe"))) == 4

        async def told_of(state: str) -> bool:
            return state in house.logged()

        await until(shared)
        before = house.logged().count("shared_state_lost")
        own_redis.stop()
        began = time.monotonic()
        answered = [await house.ask() for _ in range(4)]
        spent = time.monotonic() - began
        assert [response.status_code for response in answered] == [200, 200, 429, 429]
        assert {policy(response) for response in answered} == {2}
        assert spent < 1
        assert answered[-1].json()["retry_after"] > 0
        assert house.logged().count("shared_state_lost") == before + 1
        own_redis.go_on()
        await until(shared)
        await until(lambda: told_of("shared_state_restored"))
        assert house.logged().count("shared_state_lost") == before + 1


async def test_without_redis_from_the_start_a_share_is_granted_and_health_tells(
    tmp_path: Path,
) -> None:
    told = {**SLOW, "MAX_PROCESSES": "2", "REDIS_URL": f"unix://{tmp_path}/nowhere"}
    async with gateways(tmp_path, 1, told) as ([house], _):
        assert await statuses([house], 4, **sent_by("ana")) == [200] * 2 + [429] * 2
        assert (await house.http.get("/healthz")).json() == {
            "status": "degraded",
            "down": ["redis"],
        }


def limited(server: Server, **told: str) -> dict[str, str]:
    return {
        "SHARED_MAX_IN_FLIGHT": "3",
        "MAX_IN_FLIGHT": "3",
        "ROOM_LEASE_SECONDS": str(LEASE),
        "REDIS_URL": server.url,
        **told,
    }


async def test_two_gateways_together_answer_no_more_questions_at_once_than_there_is_room_for(
    tmp_path: Path, redis: Redis, redis_server: Server
) -> None:
    async with gateways(tmp_path, 2, limited(redis_server)) as (houses, behind):
        release = behind["generate"].hold()
        asking = [asyncio.create_task(houses[n % 2].ask()) for n in range(9)]
        done, waiting = await asyncio.wait(asking, return_when=asyncio.FIRST_COMPLETED)
        while len(waiting) > 3:
            more, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            done |= more
        assert {task.result().json()["reason"] for task in done} == {"NO_ROOM"}
        # Longer than a lease, which is renewed meanwhile.
        began = time.monotonic()
        while time.monotonic() < began + 1.5 * LEASE:
            assert (await houses[0].ask()).status_code == 503
        assert len(behind["generate"].seen) == 3
        release.set()
        assert {task.result().status_code for task in (await asyncio.wait(waiting))[0]} == {200}
        assert await statuses(houses, 2) == [200, 200]
        assert redis.zcard("sluice:{room:interactive}:places") == 0


async def test_places_of_a_killed_gateway_are_free_for_the_others_within_the_lease(
    tmp_path: Path, redis: Redis, redis_server: Server
) -> None:
    async with gateways(tmp_path, 2, limited(redis_server)) as ([dying, other], behind):
        behind["generate"].hold()
        asking = [asyncio.create_task(dying.ask()) for _ in range(3)]

        async def full() -> bool:
            return len(behind["generate"].seen) == 3

        async def admitted() -> bool:
            return (await other.ask()).status_code == 200

        await until(full)
        assert not await admitted()
        dying.process.kill()
        killed = time.monotonic()
        await dying.process.wait()
        behind["generate"].behaviour = behind["generate"].normal
        await until(admitted, LEASE + 2)
        assert time.monotonic() - killed < LEASE + 0.5
        await asyncio.gather(*asking, return_exceptions=True)


async def test_a_flushed_redis_learns_of_running_questions_by_their_renewal(
    tmp_path: Path, redis: Redis, redis_server: Server
) -> None:
    async with gateways(tmp_path, 1, limited(redis_server)) as ([house], behind):
        release = behind["generate"].hold()
        asking = asyncio.create_task(house.ask())
        await behind["generate"].reached()
        redis.flushall()
        redis.script_flush()

        async def known() -> bool:
            return redis.zcard("sluice:{room:interactive}:places") == 1

        await until(known, LEASE)
        release.set()
        assert (await asking).status_code == 200


async def test_while_redis_is_lost_a_process_keeps_to_its_share_of_the_room(
    tmp_path: Path, own_redis: Server
) -> None:
    told = limited(own_redis, SHARED_MAX_IN_FLIGHT="5", MAX_IN_FLIGHT="5", MAX_PROCESSES="2")
    async with gateways(tmp_path, 1, told) as ([house], behind):
        own_redis.kill()
        release = behind["generate"].hold()
        asking = [asyncio.create_task(house.ask()) for _ in range(5)]
        done: set[asyncio.Task[httpx.Response]] = set()
        while len(done) < 3:
            done, _ = await asyncio.wait(asking, timeout=10, return_when=asyncio.FIRST_COMPLETED)
        assert {task.result().json()["reason"] for task in done} == {"NO_ROOM"}
        release.set()
        answered = await asyncio.gather(*asking)
        assert sorted(response.status_code for response in answered) == [200, 200, 503, 503, 503]
