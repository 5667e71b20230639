from dataclasses import replace

import pytest

from services.generate.evidence import Scores, Source
from services.generate.key import key
from services.generate.task import Message, Role, Task
from tests.generate.asking import MESSAGES, SOURCES, TASK, Desk

SECRET = b"a secret of this test"


def keyed(desk: Desk, task: Task = TASK, *, secret: bytes = SECRET, validation: str = "1") -> str:
    return key(secret, task, desk.candidate(), validation)


CHANGED = [
    replace(TASK, tenant="other"),
    replace(TASK, question="Why?"),
    replace(TASK, instructions_version="en-2"),
    replace(TASK, messages=(MESSAGES[0], Message(Role.USER, "When? "))),
    replace(TASK, messages=(MESSAGES[0], Message(Role.SYSTEM, "When?"))),
    replace(TASK, messages=(*MESSAGES, Message(Role.USER, ""))),
    replace(TASK, messages=MESSAGES[:1]),
    replace(TASK, sources=SOURCES[:1]),
    replace(TASK, sources=SOURCES[::-1]),
    replace(TASK, sources=(SOURCES[0], replace(SOURCES[1], text="Never."))),
]


def sourced(label: str, text: str) -> Source:
    return replace(SOURCES[0], label=label, text=text)


async def test_the_same_characters_divided_in_another_way_are_another_question(desk: Desk) -> None:
    task = replace(TASK, sources=(sourced("S1", "1 is open."),))
    assert keyed(desk, task) != keyed(desk, replace(task, sources=(sourced("S11", " is open."),)))
    said = Message(Role.USER, "Yes.")
    longer = replace(task, messages=(*MESSAGES, said))
    more = replace(task, sources=(sourced("user", "Yes."), *task.sources))
    assert keyed(desk, longer) != keyed(desk, more)


@pytest.mark.parametrize("task", CHANGED)
async def test_a_key_changes_with_everything_an_answer_could_depend_on(
    desk: Desk, task: Task
) -> None:
    assert keyed(desk, task) != keyed(desk)


async def test_a_key_changes_with_the_candidate_the_rules_and_the_secret(desk: Desk) -> None:
    other = [
        key(SECRET, TASK, desk.candidate("backup"), "1"),
        key(SECRET, TASK, desk.candidate(has_schema=True), "1"),
        key(SECRET, TASK, desk.candidate(url="http://127.0.0.1:1/v1"), "1"),
        keyed(desk, validation="2"),
        keyed(desk, secret=b"another secret"),
    ]
    assert len({keyed(desk), *other}) == 6


async def test_a_key_stays_with_what_an_answer_cannot_depend_on(desk: Desk) -> None:
    moved = tuple(replace(each, document="elsewhere.md", score=0.1) for each in SOURCES)
    same = replace(TASK, sources=moved, scores=Scores.OTHER, input_tokens=0)
    assert keyed(desk, same) == keyed(desk)


async def test_a_key_shows_nothing_of_the_question(desk: Desk) -> None:
    assert len(keyed(desk)) == 64
    assert int(keyed(desk), 16) > 0
    assert keyed(desk, replace(TASK, question="half a \ud800 character")) != keyed(desk)
