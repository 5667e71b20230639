"""Requests made of the contract that the gateway serves, right and wrong ones, to a real suite."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import APIOperation, Case, GenerationMode, Response
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from chassis.identity import AccessLevel
from gateway.identity import development_token
from tests.suite.conftest import Running

SOAK = 10_000
FEW = 60
LIMIT = 30.0  # seconds within which every request has its response
KEPT = [content_type_conformance, response_schema_conformance, status_code_conformance]
# A part that is missing or a deadline that is over is no fault of the request; anything else is.
WORDED = {"DEADLINE", "NO_ROOM", "CAPACITY"}
STREAMED = "text/event-stream"
ACCEPTS = ["*/*", "application/json", STREAMED, f"application/json, {STREAMED}"]
# The documents that are asked are the examples'; those that come in are a tenant's of their own.
READER = development_token("ana", "demo", AccessLevel.TEAM, groups=["sre"], lifetime=36_000)
KEEPER = development_token(
    "ed", "fuzz", AccessLevel.RESTRICTED, roles=["ingest", "operator", "drafts"], lifetime=36_000
)
STALE = development_token("ana", "demo", AccessLevel.TEAM, lifetime=-60)
Operation = APIOperation[Any, Any, Any, Any]
Sent = Case[Any]
TOKENS = [*[READER] * 3, *[KEEPER] * 3, STALE, "no.good.token", ""]


def operations(suite: Running) -> Iterator[Operation]:
    for found in schemathesis.openapi.from_url(f"{suite.url}/openapi.json").get_all_operations():
        assert isinstance(found, Ok), found
        yield found.ok()


def sent(case: Sent, session: requests.Session, token: str, accept: str) -> Response:
    """What came of one case, held against the contract."""
    headers = {"Accept": accept, **({"Authorization": f"Bearer {token}"} if token else {})}
    response = case.call(session=session, headers=headers, timeout=LIMIT)
    told = response.text
    assert response.status_code < 500 or response.json()["reason"] in WORDED, told
    assert "Traceback" not in told
    if STREAMED not in response.headers["content-type"][0]:
        case.validate_response(response, checks=KEPT)
    return response


def tried(suite: Running, operation: Operation, mode: GenerationMode, number: int) -> Counter[int]:
    """How so many cases of one operation ended, by status."""
    ends: Counter[int] = Counter()
    cases = operation.as_strategy(generation_mode=mode)
    with requests.Session() as session:

        @settings(
            max_examples=number,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=cases, token=st.sampled_from(TOKENS), accept=st.sampled_from(ACCEPTS))
        def ask(case: Sent, token: str, accept: str) -> None:
            ends[sent(case, session, token, accept).status_code] += 1

        ask()
    return ends


def all_tried(suite: Running, number: int) -> dict[str, Counter[int]]:
    """About so many cases, divided among all operations that take anything."""
    found = [one for one in operations(suite) if one.path not in {"/v1/status", "/healthz"}]
    each = -(-number // (2 * len(found)))
    modes = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
    return {
        one.label: sum((tried(suite, one, mode, each) for mode in modes), Counter())
        for one in found
    }


def test_no_request_of_the_contract_breaks_the_suite(examples: Running) -> None:
    ends = all_tried(examples, FEW)
    assert sum(ends.values(), Counter()).total() >= FEW
    assert examples.ready()


@pytest.mark.soak
def test_ten_thousand_requests_of_the_contract_break_nothing(examples: Running) -> None:
    ends = all_tried(examples, SOAK)
    assert sum(ends.values(), Counter()).total() >= SOAK
    assert examples.ready()
