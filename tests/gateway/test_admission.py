"""Who gets in over HTTP, and what those hear who do not."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import grpc
import httpx
import jwt
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from chassis.identity import AccessLevel, Caller, Minter, development_key
from gateway.identity import _DEVELOPMENT_SECRET
from sluice.answer.v1 import answer_pb2
from tests.gateway.house import QUESTION, SEATS, House, bearer, hanging, raising, token, until

pytestmark = pytest.mark.asyncio(loop_scope="module")

JSON = {"Content-Type": "application/json"}


def refusal(response: httpx.Response) -> tuple[int, str, str | None]:
    """Status, reason and field of a problem, which says no more than it should."""
    assert response.headers["content-type"] == "application/problem+json"
    problem = response.json()
    assert problem["status"] == response.status_code
    assert set(problem) <= {
        "type",
        "title",
        "status",
        "detail",
        "reason",
        "field",
        "retry_after",
        "request_id",
    }
    assert problem["request_id"] == response.headers["x-request-id"]
    assert "Traceback" not in response.text
    return response.status_code, problem["reason"], problem.get("field")


BODIES = [
    ({"question": ""}, "question"),
    ({"question": " \n\t "}, "question"),
    ({"question": "x" * 4_001}, "question"),
    ({"question": "a\0b"}, "question"),
    ({"question": "why?\x1f"}, "question"),
    ({"question": "\x0bwhy?"}, "question"),
    ({"question": 7}, "question"),
    ({"question": None}, "question"),
    ({}, "question"),
    ({"question": "why", "system": "obey"}, "system"),
    ({"question": "why", "tools": []}, "tools"),
    ({"question": "why", "model": "big"}, "model"),
    ({"question": "why", "access_level": "restricted"}, "access_level"),
    ({"question": "why", "filters": {"tenant": "other"}}, "filters.tenant"),
    ({"question": "why", "filters": {"document_types": "runbook"}}, "filters.document_types"),
    ({"question": "why", "filters": {"areas": ["a", 7]}}, "filters.areas[1]"),
    ({"question": "why", "filters": {"areas": [""]}}, "filters.areas[0]"),
    ({"question": "why", "filters": {"areas": ["a"] * 101}}, "filters.areas"),
    ({"question": "why", "filters": {"document_ids": ["x" * 257]}}, "filters.document_ids[0]"),
    (
        {"question": "why", "filters": {"publication_states": ["x"]}},
        "filters.publication_states[0]",
    ),
    ({"question": "why", "filters": None}, "filters"),
    ({"question": "why", "locale": "../etc"}, "locale"),
]


@pytest.mark.parametrize(("body", "field"), BODIES)
async def test_a_wrong_field_is_named(house: House, body: object, field: str) -> None:
    assert refusal(await house.ask(body)) == (400, "INVALID_INPUT", field)
    assert house.retrieve.seen == []


RAW = [
    (b'{"question": "caf\xe9"}', "INVALID_INPUT", "question"),
    (b'{"question": "\\ud800"}', "INVALID_INPUT", "question"),
    (
        b'{"question": "why", "filters": {"areas": ["\\udfff"]}}',
        "INVALID_INPUT",
        "filters.areas[0]",
    ),
    (b'{"question": "why", "\xff": 1}', "INVALID_INPUT", None),
    (b"[" * 20_000 + b"]" * 20_000, "MALFORMED", None),
    (b'{"question": ' + b'{"a":' * 10_000 + b"1" + b"}" * 10_001, "MALFORMED", None),
    (b'{"question": ' + b"9" * 5_000 + b"}", "MALFORMED", None),
    (b"{", "MALFORMED", None),
    (b"", "INVALID_INPUT", None),
    (b"null", "INVALID_INPUT", None),
    (b'"why"', "INVALID_INPUT", None),
    (b"[]", "INVALID_INPUT", None),
    (b'{"question": NaN}', "INVALID_INPUT", "question"),
    ('{"question": "why"}'.encode("utf-16"), "MALFORMED", None),
]


@pytest.mark.parametrize(("raw", "reason", "field"), RAW)
async def test_bytes_that_are_no_question_are_a_400(
    house: House, raw: bytes, reason: str, field: str | None
) -> None:
    response = await house.http.post("/v1/answers", content=raw, headers={**bearer(), **JSON})
    assert refusal(response) == (400, reason, field)


async def test_the_longest_question_counts_after_white_space_is_normalised(house: House) -> None:
    assert (await house.ask({"question": "é " * 2_000 + " " * 40_000})).status_code == 200
    assert len(house.retrieve.seen[0].request.question) == 3_999


async def test_a_body_above_the_limit_is_a_413_with_and_without_a_length(house: House) -> None:
    body = json.dumps({"question": "why", "locale": "x" * 65_536}).encode()

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(body), 8_192):
            yield body[start : start + 8_192]

    for content in (body, pieces(), b"x" * 600_000):
        response = await house.http.post(
            "/v1/answers", content=content, headers={**bearer(), **JSON}
        )
        assert refusal(response) == (413, "BODY_TOO_LARGE", None)
    assert (await house.ask()).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"Content-Type": "application/vnd.api+json"},
        {"Content-Type": "application/json", "Content-Encoding": "gzip"},
        {},
    ],
)
async def test_only_plain_json_is_read(house: House, headers: dict[str, str]) -> None:
    content = json.dumps({"question": QUESTION}).encode()
    response = await house.http.post("/v1/answers", content=content, headers=bearer() | headers)
    assert refusal(response) == (415, "UNSUPPORTED_MEDIA_TYPE", None)


@pytest.mark.parametrize(
    ("name", "second"),
    [
        ("Authorization", bearer()["Authorization"]),
        ("authorization", "Bearer other"),
        ("Content-Type", "application/json"),
        ("CONTENT-TYPE", "text/plain"),
    ],
)
async def test_a_header_that_is_there_twice_is_named(house: House, name: str, second: str) -> None:
    headers = [*bearer().items(), *JSON.items(), (name, second)]
    content = json.dumps({"question": QUESTION}).encode()
    response = await house.http.post("/v1/answers", content=content, headers=headers)
    assert refusal(response) == (400, "INVALID_INPUT", name.title())
    assert house.retrieve.seen == []


async def test_unknown_addresses_and_methods_are_problems(house: House) -> None:
    for path in ("/v1", "/v1/answers/", "/v1/secrets", "/docs", "/v1/answers/%00"):
        assert refusal(await house.http.post(path)) == (404, "NOT_FOUND", None)
    wrong = await house.http.get("/v1/answers")
    assert refusal(wrong) == (405, "METHOD_NOT_ALLOWED", None)
    assert wrong.headers["allow"] == "POST"


@pytest.mark.parametrize("value", ["0", "-1", "1e3", "inf", "nan", "soon", "", "9" * 400])
async def test_a_wrong_time_limit_is_named(house: House, value: str) -> None:
    assert refusal(await house.ask(Request_Timeout=value)) == (
        400,
        "INVALID_INPUT",
        "Request-Timeout",
    )


async def test_a_sane_request_id_comes_back_and_any_other_is_replaced(house: House) -> None:
    for sane in ("job-7.retry_2", "y" * 64, 'a;b:"{c}"'):
        assert (await house.ask(X_Request_Id=sane)).headers["x-request-id"] == sane
    for strange in ("a b", "x" * 65, "x" * 20_000, "", "a\tb", "\x7f"):
        replaced = (await house.ask(X_Request_Id=strange)).headers["x-request-id"]
        assert replaced != strange
        assert len(replaced) == 32


async def test_a_line_break_in_a_request_id_reaches_no_header_and_no_log(house: House) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", house.http_port)
    writer.write(b"GET /healthz HTTP/1.1\r\nHost: a\r\nX-Request-Id: a\nSet-Cookie: b=c\r\n\r\n")
    async with asyncio.timeout(5):
        head = await reader.readuntil(b"\r\n\r\n")
    writer.close()
    assert b"set-cookie" not in head.lower()
    assert "Set-Cookie" not in house.logged()


async def test_a_request_id_of_a_megabyte_is_not_taken_in(house: House) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", house.http_port)
    writer.write(b"GET /healthz HTTP/1.1\r\nHost: a\r\nX-Request-Id: " + b"x" * 1_000_000)
    async with asyncio.timeout(5):
        said = await reader.read(1_000)
    writer.transport.abort()
    assert said.startswith(b"HTTP/1.1 400 ")
    assert b"xxx" not in said
    assert "xxx" not in house.logged()


async def test_what_is_no_http_is_a_problem_too(house: House) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", house.http_port)
    writer.write(b"\x16\x03\x01 hello\r\n\r\n")
    async with asyncio.timeout(5):
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    assert head.startswith(b"HTTP/1.1 400 ")
    assert b"content-type: application/problem+json" in head.lower()
    problem = json.loads(body)
    assert (problem["status"], problem["reason"]) == (400, "MALFORMED")
    assert f"x-request-id: {problem['request_id']}" in head.decode().lower()


async def test_the_contract_is_published(house: House) -> None:
    published = (await house.http.get("/openapi.json")).json()
    answers = published["paths"]["/v1/answers"]["post"]
    assert set(answers["responses"]) == {"200", "202", "4XX", "5XX"}
    assert set(answers["responses"]["4XX"]["content"]) == {"application/problem+json"}
    answered = answers["responses"]["200"]["content"]
    assert set(answered) == {"application/json", "text/event-stream"}
    events = answered["text/event-stream"]["itemSchema"]["oneOf"]
    named = [event["properties"]["event"]["const"] for event in events]
    assert named == ["stage", "delta", "retract", "answer", "error"]
    assert json.dumps(events).count("$ref") == 1
    assert "AnswerResponse" in published["components"]["schemas"]
    request = published["components"]["schemas"]["AnswerRequest"]
    assert set(request["properties"]) == {"question", "filters", "locale", "supersedes"}
    assert request["additionalProperties"] is False
    read = [(one["in"], one["name"]) for one in answers["parameters"]]
    assert read == [("header", name) for name in ("Request-Timeout", "Prefer", "Idempotency-Key")]
    (scheme,) = answers["security"][0]
    assert published["components"]["securitySchemes"][scheme]["scheme"] == "bearer"


def forged(**changes: object) -> str:
    claims = jwt.decode(token(), options={"verify_signature": False}) | changes
    claims = {name: value for name, value in claims.items() if value is not None}
    return jwt.encode(claims, _DEVELOPMENT_SECRET, algorithm="HS256")


TOKENS = [
    (None, "UNAUTHENTICATED"),
    ("Basic YTpi", "UNAUTHENTICATED"),
    ("Bearer", "UNAUTHENTICATED"),
    ("Bearer nonsense", "BAD_TOKEN"),
    (f"Bearer {token(lifetime=-60)}", "TOKEN_EXPIRED"),
    (f"Bearer {token(audience='billing')}", "BAD_TOKEN"),
    (f"Bearer {forged(iss='somebody')}", "BAD_TOKEN"),
    (f"Bearer {forged(exp=None)}", "BAD_TOKEN"),
    (f"Bearer {forged(exp=float('inf'))}", "BAD_TOKEN"),
    (f"Bearer {forged(tenant=None)}", "BAD_CLAIM"),
    (f"Bearer {forged(level=None)}", "BAD_CLAIM"),
    (f"Bearer {forged(groups='sre')}", "BAD_CLAIM"),
    (f"Bearer {token()[:-3]}AAA", "BAD_TOKEN"),
    (f"Bearer {jwt.encode({'sub': 'ana'}, '', algorithm='none')}", "BAD_TOKEN"),
    # An internal token is for its stage alone, never a way in.
    (
        "Bearer "
        + Minter(development_key()).mint(Caller("ana", "acme", AccessLevel.TEAM), "sluice"),
        "BAD_TOKEN",
    ),
]


@pytest.mark.parametrize(("authorization", "reason"), TOKENS)
async def test_who_has_no_good_token_hears_401_and_reaches_no_stage(
    house: House, authorization: str | None, reason: str
) -> None:
    headers = {"Authorization": authorization} if authorization is not None else {}
    response = await house.http.post("/v1/answers", json={"question": QUESTION}, headers=headers)
    assert refusal(response) == (401, reason, None)
    sent = reason != "UNAUTHENTICATED"
    said = 'Bearer error="invalid_token"' if sent else "Bearer"
    assert response.headers["www-authenticate"] == said
    metadata = [("authorization", headers["Authorization"])] if headers else []
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await house.answers.Ask(
            answer_pb2.AskRequest(question=QUESTION), metadata=metadata, timeout=10
        )
    assert failure.value.code() is grpc.StatusCode.UNAUTHENTICATED
    assert house.retrieve.seen == []


async def test_a_good_token_without_a_known_access_level_opens_nothing(house: House) -> None:
    for level in ("root", ["root", 7], []):
        response = await house.ask(Authorization=f"Bearer {forged(level=level)}")
        assert refusal(response) == (403, "NO_ACCESS_LEVEL", None)
        assert response.headers["www-authenticate"] == 'Bearer error="insufficient_scope"'
    assert house.retrieve.seen == []


async def test_a_token_without_end_or_with_endless_brackets_is_refused(house: House) -> None:
    nested = base64.urlsafe_b64encode(b'{"a":' * 1_200 + b"1" + b"}" * 1_200).decode()
    for strange in ("a" * 9_000, f"{nested}.e30.AA", f"{nested.rstrip('=')}.e30.AA"):
        response = await house.ask(Authorization=f"Bearer {strange}")
        assert refusal(response) == (401, "BAD_TOKEN", None)


async def test_the_tenant_is_the_tokens_whatever_the_request_says(house: House) -> None:
    await house.ask(X_Tenant="acme", **bearer(tenant="globex", level=AccessLevel.PUBLIC))
    caller = house.retrieve.seen[0].caller
    assert (caller.tenant, caller.level) == ("globex", AccessLevel.PUBLIC)


@asynccontextmanager
async def full(house: House) -> AsyncIterator[None]:
    """Every seat taken by a question that waits in generate."""
    release = house.generate.hold()
    asking = [asyncio.create_task(house.ask()) for _ in range(SEATS)]
    await all_seats_taken(house)
    try:
        yield
    finally:
        release.set()
        answered = await asyncio.gather(*asking)
    assert [response.status_code for response in answered] == [200] * SEATS


async def all_seats_taken(house: House) -> None:
    async def taken() -> bool:
        return len(house.generate.seen) == SEATS

    await until(taken)


async def test_the_question_too_many_is_refused_at_once_and_health_is_not(house: House) -> None:
    async with full(house):
        response = await house.ask()
        assert refusal(response) == (503, "NO_ROOM", None)
        assert "retry-after" not in response.headers
        with pytest.raises(grpc.aio.AioRpcError) as failure:
            await house.answers.Ask(
                answer_pb2.AskRequest(question=QUESTION),
                metadata=[("authorization", f"Bearer {token()}")],
                timeout=10,
            )
        assert failure.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert (await house.http.get("/healthz")).json() == {"status": "ok"}
        health = health_pb2_grpc.HealthStub(house.channel)
        found = await health.Check(health_pb2.HealthCheckRequest(service="readiness"), timeout=5)
        assert found.status == health_pb2.HealthCheckResponse.SERVING
        assert refusal(await house.http.post("/v1/answers", json={"question": QUESTION})) == (
            401,
            "UNAUTHENTICATED",
            None,
        )
    assert (await house.ask()).status_code == 200


async def test_a_client_that_leaves_ends_the_stage_call_and_frees_its_seat(house: House) -> None:
    house.generate.behaviour = hanging
    body = json.dumps({"question": QUESTION}).encode()
    head = (
        f"POST /v1/answers HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token()}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    writers = []
    for _ in range(SEATS):
        _, writer = await asyncio.open_connection("127.0.0.1", house.http_port)
        writer.write(head.encode() + body)
        writers.append(writer)
    await all_seats_taken(house)
    assert (await house.ask()).status_code == 503

    writers[0].transport.abort()
    await asyncio.wait_for(house.generate.cancelled.wait(), 5)
    house.generate.behaviour = house.generate.normal
    async with asyncio.timeout(5):
        while (await house.ask()).status_code != 200:
            pass
    for writer in writers:
        writer.transport.abort()
    assert await until(house.idle)


async def test_a_cancelled_grpc_call_ends_the_stage_call_and_frees_its_seat(house: House) -> None:
    house.generate.behaviour = hanging
    metadata = (("authorization", f"Bearer {token()}"),)
    request = answer_pb2.AskRequest(question=QUESTION)
    calls = [house.answers.Ask(request, metadata=metadata, timeout=20) for _ in range(SEATS)]
    waiting = [asyncio.ensure_future(call) for call in calls]
    await all_seats_taken(house)
    calls[0].cancel()
    await asyncio.wait_for(house.generate.cancelled.wait(), 5)
    house.generate.behaviour = house.generate.normal
    async with asyncio.timeout(5):
        while (await house.ask()).status_code != 200:
            pass
    for call in calls:
        call.cancel()
    ended = await asyncio.gather(*waiting, return_exceptions=True)
    assert all(isinstance(end, asyncio.CancelledError) for end in ended)
    assert await until(house.idle)


async def test_health_names_the_parts_that_are_down(house: House) -> None:
    await house.generate.stop()

    async def degraded() -> bool:
        found = await house.http.get("/healthz")
        told: dict[str, object] = found.json()
        return found.status_code == 200 and told == {"status": "degraded", "down": ["generate"]}

    async def mended() -> bool:
        told: dict[str, object] = (await house.http.get("/healthz")).json()
        return told == {"status": "ok"}

    assert await until(degraded)
    await house.generate.start()
    assert await until(mended)


async def test_what_can_be_had_now_is_told_to_anybody_without_internals(house: House) -> None:
    async def told() -> dict[str, bool]:
        response = await house.http.get("/v1/status")
        assert (response.status_code, response.headers["cache-control"]) == (200, "no-store")
        found: dict[str, bool] = response.json()
        return found

    async def can_be_had(*names: str) -> bool:
        known = ("answers", "search", "documents", "jobs")
        return await told() == {name: name in names for name in known}

    assert await until(partial(can_be_had, "answers", "search", "documents"))
    for stage, left in (
        ("generate", ("search", "documents")),
        ("retrieve", ("documents",)),
        ("ingest", ()),
    ):
        await house.stages[stage].stop()
        assert await until(partial(can_be_had, *left))
    for stage in ("generate", "retrieve", "ingest"):
        await house.stages[stage].start()
    assert await until(partial(can_be_had, "answers", "search", "documents"))
    async with full(house):
        assert await can_be_had("answers", "search", "documents")


async def test_health_is_told_without_a_body_too(house: House) -> None:
    told, head = await house.http.get("/healthz"), await house.http.head("/healthz")
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == str(len(told.content))
    wrong = await house.http.post("/healthz")
    assert refusal(wrong) == (405, "METHOD_NOT_ALLOWED", None)


async def test_questions_and_tokens_never_reach_the_log(house: House) -> None:
    marker = "zanzibar-4711"
    await house.ask({"question": f"Where is {marker}?"})
    await house.ask({"question": f"Where is {marker}?", marker: 1})
    bad = json.dumps({"question": f"\ud800 {marker}"}).encode()
    await house.http.post("/v1/answers", content=bad, headers={**bearer(), **JSON})
    await house.http.post(f"/v1/answers?q={marker}", json={}, headers=bearer())
    house.assemble.behaviour = raising(RuntimeError("bug"))
    failed = await house.ask({"question": f"Where is {marker}?"}, X_Request_Id="the-failed-one")
    assert failed.status_code == 500
    await house.http.post("/v1/answers", json={"question": marker})
    log = house.logged()
    assert marker not in log
    assert token()[-20:] not in log
    lines = [json.loads(line) for line in log.splitlines()]
    answered = [line for line in lines if line["event"] == "answered"]
    assert all(line["answer_id"] and line["trace_id"] for line in answered)
    assert [line["request_id"] for line in answered if "request_id" in line]
    of_failed = [line["event"] for line in lines if line.get("request_id") == "the-failed-one"]
    assert of_failed == ["stage_failed", "request_refused"]
