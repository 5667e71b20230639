"""Refusals as problems: every class of error has its status, and a known wait is said."""

import json

import pytest

from chassis import errors
from chassis.errors import SluiceError
from gateway.problem import STATUS, refusal
from gateway.quota import AllowanceSpent


def test_every_error_that_crosses_layers_has_a_status() -> None:
    ours = {cls for cls in SluiceError.__subclasses__() if cls.__module__ == errors.__name__}
    assert set(STATUS) == ours | {AllowanceSpent}


@pytest.mark.parametrize(
    ("error", "status", "header"),
    [
        (errors.Exhausted("full", retry_after=1.2), 503, "2"),
        (errors.Unavailable("down", retry_after=0), 503, "0"),
        (errors.Exhausted("full"), 503, None),
        (AllowanceSpent("spent", retry_after=0.2), 429, "1"),
    ],
)
def test_the_wait_is_said_only_when_it_is_known(
    error: SluiceError, status: int, header: str | None
) -> None:
    response = refusal("r-1", error)
    assert response.status_code == status
    assert response.headers.get("retry-after") == header
    assert json.loads(bytes(response.body)).get("retry_after") == error.retry_after


def test_an_error_of_a_subclass_has_its_nearest_ancestors_status() -> None:
    class PoolFull(errors.Exhausted):
        pass

    assert refusal("r-1", PoolFull("full")).status_code == 503


def test_what_nobody_knows_is_ours_and_says_nothing() -> None:
    response = refusal("r-1", KeyError("secret"))
    assert response.status_code == 500
    assert json.loads(bytes(response.body)) == {
        "type": "about:blank",
        "title": "Internal Server Error",
        "status": 500,
        "detail": "internal error",
        "reason": "INTERNAL",
        "request_id": "r-1",
    }
