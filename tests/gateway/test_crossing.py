"""Web pages of other origins: which may call, and what they may read."""

from collections.abc import AsyncIterator

import httpx
import pytest
import pytest_asyncio

from chassis.settings import load
from gateway.settings import GatewaySettings
from tests.capacity.server import Server
from tests.gateway.house import ALL, House, bearer, gateway, raising, served

pytestmark = pytest.mark.asyncio(loop_scope="module")

ORIGIN = "https://wiki.example.org"
PORTAL = "https://portal.example.org:8443"
ELSEWHERE = "https://evil.example.org"
READABLE = {"ratelimit", "ratelimit-policy", "retry-after", "x-request-id", "x-trace-id"}
ASKS = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def standing(
    tmp_path_factory: pytest.TempPathFactory, redis_server: Server
) -> AsyncIterator[House]:
    """A gateway that pages of two origins may call."""
    log = tmp_path_factory.mktemp("gateway") / "log"
    told = {"CORS_ORIGINS": f"{ORIGIN}, {PORTAL}", "REDIS_URL": redis_server.url}
    async with served(*ALL) as behind, gateway(behind, log, told) as house:
        yield house


async def preflight(house: House, origin: str, path: str = "/v1/answers") -> httpx.Response:
    return await house.http.options(path, headers={"Origin": origin, **ASKS})


def may_read(response: httpx.Response, origin: str) -> bool:
    exposed = response.headers["access-control-expose-headers"].lower().split(", ")
    allowed: str = response.headers["access-control-allow-origin"]
    return allowed == origin and set(exposed) == READABLE and "Origin" in response.headers["vary"]


@pytest.mark.parametrize("origin", [ORIGIN, PORTAL])
async def test_a_preflight_is_answered_without_a_token(house: House, origin: str) -> None:
    response = await preflight(house, origin)
    assert response.status_code == 200
    assert response.headers["access-control-allow-origin"] == origin
    assert response.headers["access-control-allow-headers"] == "authorization"
    methods = response.headers["access-control-allow-methods"].split(", ")
    assert set(methods) == {"GET", "POST", "PUT", "DELETE"}
    assert "access-control-allow-credentials" not in response.headers
    assert len(response.headers["x-request-id"]) == 32


async def test_pages_of_any_other_origin_hear_that_they_may_not(house: House) -> None:
    for origin in (ELSEWHERE, "null", f"{ORIGIN}.evil.org", ORIGIN.upper()):
        response = await preflight(house, origin)
        assert response.status_code == 400
        assert "access-control-allow-origin" not in response.headers
        answered = await house.ask(Origin=origin)
        assert "access-control-allow-origin" not in answered.headers


async def test_what_a_page_is_answered_it_may_read(house: House) -> None:
    assert may_read(await house.ask(Origin=ORIGIN), ORIGIN)
    async with house.told(Origin=ORIGIN) as (response, _):
        assert may_read(response, ORIGIN)


async def test_a_page_may_read_every_refusal(house: House) -> None:
    house.assemble.behaviour = raising(RuntimeError("bug"))
    url, page = "/v1/answers", {"Origin": ORIGIN}
    refused = [
        await house.http.post(url, json={"question": "why"}, headers=page),
        await house.ask({}, **page),
        await house.http.post("/v1/nothing", headers=page),
        await house.http.post(
            url, headers=[("Origin", ORIGIN), *[("Authorization", "Bearer a")] * 2]
        ),
        await house.http.post(
            url, content=b"x" * 70_000, headers={**page, "Content-Type": "application/json"}
        ),
        await house.ask(**page),
    ]
    assert [response.status_code for response in refused] == [401, 400, 404, 400, 413, 500]
    assert all(may_read(response, ORIGIN) for response in refused)


async def test_an_ordinary_options_is_no_preflight(house: House) -> None:
    response = await house.http.options("/v1/answers", headers=bearer())
    assert (response.status_code, response.json()["reason"]) == (405, "METHOD_NOT_ALLOWED")


@pytest.mark.parametrize(
    "wrong",
    ["*", "wiki.example.org", "https://wiki.example.org/", "https://Wiki.example.org", "null"],
)
async def test_what_is_no_origin_stops_the_start(
    wrong: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SLUICE_ENV", "development")
    monkeypatch.setenv("SLUICE_CORS_ORIGINS", f"{ORIGIN},{wrong}")
    with pytest.raises(SystemExit):
        load(GatewaySettings)
    assert capsys.readouterr().err.startswith("SLUICE_CORS_ORIGINS: an origin is a scheme and")


async def test_no_origin_is_admitted_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICE_ENV", "development")
    assert load(GatewaySettings).cors_origins == ()
