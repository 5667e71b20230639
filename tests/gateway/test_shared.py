"""What several gateways grant together over one Redis, while it answers and while it does not."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

import grpc
import httpx
import pytest
import pytest_asyncio
from google.rpc.error_details_pb2 import ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status
from redis import Redis

from gateway.places import KEY as PLACES
from sluice.answer.v1 import answer_pb2
from tests.capacity.server import Server
from tests.gateway.house import (
    ALL,
    QUESTION,
    House,
    gateway,
    served,
    token,
    until,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")

LEASE, ROOM = 1.0, 12
# Hardly anything is refilled while a test runs.
TOLD = {
    "SUBJECT_REQUESTS_PER_MINUTE": "5.2",
    "SUBJECT_REQUEST_BURST": "5",
    "TENANT_REQUESTS_PER_MINUTE": "12.2",
    "TENANT_REQUEST_BURST": "12",
    "SHARED_MAX_IN_FLIGHT": str(ROOM),
    "MAX_IN_FLIGHT": str(ROOM),
    "ROOM_LEASE_SECONDS": str(LEASE),
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def standing_pair(
    tmp_path_factory: pytest.TempPathFactory, redis_server: Server
) -> AsyncIterator[list[House]]:
    folder = tmp_path_factory.mktemp("gateways")
    told = {**TOLD, "REDIS_URL": redis_server.url}
    async with (
        served(*ALL) as behind,
        gateway(behind, folder / "log-0", told) as first,
        gateway(behind, folder / "log-1", told) as second,
    ):
        yield [first, second]


@pytest_asyncio.fixture(loop_scope="module")
async def pair(standing_pair: list[House], redis: Redis) -> list[House]:
    """Two gateways before the same stages, over one Redis that has forgotten everything."""
    for stage in standing_pair[0].stages.values():
        stage.reset()
    return standing_pair


@asynccontextmanager
async def alone(folder: Path, told: Mapping[str, str]) -> AsyncIterator[House]:
    async with served(*ALL) as behind, gateway(behind, folder / "log", told) as house:
        yield house


def sent_by(subject: str, tenant: str = "acme") -> dict[str, str]:
    return {"Authorization": f"Bearer {token(subject, tenant)}"}


def by_anybody(number: int) -> dict[str, str]:
    """A caller whose allowance nobody else has touched."""
    return sent_by(f"subject-{number}", f"tenant-{number}")


async def statuses(houses: list[House], times: int, **headers: str) -> list[int]:
    asking = [houses[n % len(houses)].ask(None, **headers) for n in range(times)]
    return sorted(response.status_code for response in await asyncio.gather(*asking))


async def test_two_gateways_grant_a_subject_and_a_tenant_exactly_their_bursts(
    pair: list[House],
) -> None:
    assert await statuses(pair, 9, **sent_by("ana")) == [200] * 5 + [429] * 4
    assert await statuses(pair, 9, **sent_by("bo")) == [200] * 5 + [429] * 4
    # What refused subjects asked was not charged to their tenant: two of twelve are left.
    assert await statuses(pair, 5, **sent_by("cleo")) == [200] * 2 + [429] * 3
    assert await statuses(pair, 5, **sent_by("ana", "globex")) == [200] * 5
    assert len(pair[0].retrieve.seen) == 17
    refused = await pair[0].ask(None, **sent_by("cleo"))
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
    pair: list[House],
) -> None:
    house, _ = pair
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
    failure = await failure_of(house, answer_pb2.AskRequest(question=QUESTION))
    assert failure.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    info, retry = details(failure)
    assert info.reason == "ALLOWANCE_SUBJECT"
    assert 0 < retry.retry_delay.ToNanoseconds() / 1e9 <= refused.json()["retry_after"]


async def failure_of(house: House, request: answer_pb2.AskRequest) -> grpc.aio.AioRpcError:
    metadata = [("authorization", f"Bearer {token()}")]
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await house.answers.Ask(request, metadata=metadata, timeout=10)
    return failure.value


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
    async with alone(tmp_path, {**told, "REDIS_URL": redis_server.url}) as house:
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
    pair: list[House], redis: Redis
) -> None:
    house, other = pair
    bad_token = {"Authorization": "Bearer nonsense"}
    for _ in range(3):
        assert (await house.ask({"question": ""})).status_code == 400
        assert (await house.ask(None, **bad_token)).status_code == 401
        failure = await failure_of(house, answer_pb2.AskRequest())
        assert failure.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert redis.keys("sluice:{allowance:*}:subject:*") == []
    async with full(house, other):
        for _ in range(5):
            assert (await house.ask()).json()["reason"] == "NO_ROOM"
        assert (await house.ask()).json()["reason"] == "ALLOWANCE_SUBJECT"
        assert (await house.ask({"question": ""}, **bad_token)).status_code == 400
        assert (await house.ask(None, **bad_token)).status_code == 401


@asynccontextmanager
async def full(*houses: House) -> AsyncIterator[None]:
    """All of the shared room taken by questions that wait in generate, each gateway's in turn."""
    generate = houses[0].generate
    release = generate.hold()
    asking = [
        asyncio.create_task(houses[n % len(houses)].ask(None, **by_anybody(n))) for n in range(ROOM)
    ]

    async def taken() -> bool:
        return len(generate.seen) == ROOM

    await until(taken)
    yield
    release.set()
    answered = await asyncio.gather(*asking)
    assert {response.status_code for response in answered} == {200}


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
    async with alone(tmp_path, told) as house:

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


async def test_without_redis_from_the_start_each_share_is_granted_and_health_tells(
    tmp_path: Path,
) -> None:
    told = TOLD | {
        "MAX_PROCESSES": "2",
        "SHARED_MAX_IN_FLIGHT": "5",
        "REDIS_URL": f"unix://{tmp_path}/nowhere",
    }
    async with alone(tmp_path, told) as house:
        assert await statuses([house], 4, **sent_by("ana")) == [200] * 2 + [429] * 2
        assert (await house.http.get("/healthz")).json() == {
            "status": "degraded",
            "down": ["redis"],
        }
        release = house.generate.hold()
        asking = [asyncio.create_task(house.ask(None, **by_anybody(n))) for n in range(5)]
        done = await first_of(asking, 3)
        assert {response.json()["reason"] for response in done} == {"NO_ROOM"}
        release.set()
        answered = await asyncio.gather(*asking)
        assert sorted(response.status_code for response in answered) == [200, 200, 503, 503, 503]


async def first_of(asking: list[asyncio.Task[httpx.Response]], number: int) -> list[httpx.Response]:
    """The responses that came first, when there are so many."""
    async with asyncio.timeout(20):
        ended = asyncio.as_completed(asking)
        return [await next(ended) for _ in range(number)]


async def test_two_gateways_together_answer_no_more_questions_at_once_than_there_is_room_for(
    pair: list[House], redis: Redis
) -> None:
    release = pair[0].generate.hold()
    asking = [asyncio.create_task(pair[n % 2].ask(None, **by_anybody(n))) for n in range(ROOM + 6)]
    done = await first_of(asking, 6)
    assert {response.json()["reason"] for response in done} == {"NO_ROOM"}
    # Longer than a lease, which is renewed meanwhile.
    began, number = time.monotonic(), 100
    while time.monotonic() < began + 1.5 * LEASE:
        number += 1
        assert (await pair[number % 2].ask(None, **by_anybody(number))).status_code == 503
    assert len(pair[0].generate.seen) == ROOM
    release.set()
    answered = await asyncio.gather(*asking)
    assert sorted(response.status_code for response in answered) == [200] * ROOM + [503] * 6
    assert await statuses(pair, 2) == [200, 200]
    assert redis.zcard(PLACES) == 0


async def test_places_of_a_killed_gateway_are_free_for_the_others_within_the_lease(
    tmp_path: Path, pair: list[House], redis_server: Server
) -> None:
    other = pair[0]
    told = {**TOLD, "REDIS_URL": redis_server.url}
    async with gateway(other.stages, tmp_path / "log", told) as dying:
        other.generate.hold()
        asking = [asyncio.create_task(dying.ask(None, **by_anybody(n))) for n in range(ROOM)]
        numbers = count(100)

        async def taken() -> bool:
            return len(other.generate.seen) == ROOM

        async def admitted() -> bool:
            return (await other.ask(None, **by_anybody(next(numbers)))).status_code == 200

        await until(taken)
        assert not await admitted()
        dying.process.kill()
        killed = time.monotonic()
        await dying.process.wait()
        other.generate.behaviour = other.generate.normal
        await until(admitted)
        assert time.monotonic() - killed < LEASE + 0.5
        await asyncio.gather(*asking, return_exceptions=True)


async def test_a_flushed_redis_learns_of_running_questions_by_their_renewal(
    pair: list[House], redis: Redis
) -> None:
    async with full(*pair):
        redis.flushall()
        redis.script_flush()

        async def known() -> bool:
            return redis.zcard(PLACES) == ROOM

        assert await until(known, LEASE)
