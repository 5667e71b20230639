from collections.abc import Callable
from typing import Any

import pytest

from chassis.identity import AccessLevel, Caller
from corpus.points import State, StoredPassage
from corpus.scope import Scope

Build = Callable[..., StoredPassage]


def scope(**changes: Any) -> Scope:  # noqa: ANN401 - any field
    caller = Caller(
        subject="ann",
        tenant=changes.pop("tenant", "acme"),
        level=changes.pop("level", AccessLevel.TEAM),
        groups=frozenset(changes.pop("groups", ())),
    )
    given = {"epoch": 5, "states": (State.PUBLISHED,), "chunking_version": "blocks1-256-1"}
    return Scope.of(caller, **{**given, **changes})


def test_a_passage_within_the_scope_is_permitted(passage: Build) -> None:
    assert scope().permits(passage())


@pytest.mark.parametrize(
    "change",
    [
        {"tenant": "other"},
        {"access": AccessLevel.RESTRICTED},
        {"groups": ("sre",)},
        {"state": State.DRAFT},
        {"chunking_version": "blocks0"},
        {"valid_from": 6},
        {"valid_to": 5},
    ],
)
def test_a_passage_outside_in_one_respect_is_not(change: dict[str, Any], passage: Build) -> None:
    assert not scope().permits(passage(**change))


def test_one_shared_group_is_enough(passage: Build) -> None:
    assert scope(groups=["dba", "sre"]).permits(passage(groups=("sre", "web")))


def test_a_caller_who_claims_the_mark_for_everybody_gains_nothing(passage: Build) -> None:
    assert not scope(groups=["*"]).permits(passage(groups=("sre",)))


def test_without_states_nothing_is_permitted(passage: Build) -> None:
    assert not scope(states=()).permits(passage())
