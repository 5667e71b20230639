import pytest

from chassis.errors import InvalidInput
from services.generate.evidence import Scores
from services.generate.guard import Guard
from services.generate.task import Message, Role, Task
from tests.generate.sources import prose, source

GUARD = Guard(messages=2, sources=2, content_bytes=20)


def task(question: str = "When?", messages: int = 1, text: str = "short", sources: int = 1) -> Task:
    return Task(
        "demo",
        question,
        tuple(Message(Role.USER, text) for _ in range(messages)),
        tuple(source(f"S{at}", prose("text")) for at in range(sources)),
        Scores.COSINE,
        0,
    )


def test_what_fits_exactly_passes() -> None:
    GUARD.check(task(messages=2, text="é" * 5, sources=2), needs_messages=True)
    GUARD.check(task(messages=0), needs_messages=False)
    GUARD.check(task(messages=0, sources=0), needs_messages=True)
    GUARD.check(task("a\tb\nc"), needs_messages=True)
    assert len(("é" * 5).encode()) * 2 == GUARD.content_bytes


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        (task(question=" \n"), "question"),
        (task(question="x" * 4_001), "question"),
        (task(messages=3), "messages"),
        (task(messages=2, text="é" * 5 + "x"), "messages"),
        (task(sources=3), "sources"),
        (task("a\x00b"), "question"),
        (task("a\x1fb"), "question"),
        (task(text="a\x0cb"), "messages[0].content"),
        (task(messages=0), "messages"),
    ],
)
def test_what_does_not_fit_names_its_field(wrong: Task, field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        GUARD.check(wrong, needs_messages=True)
    assert caught.value.field == field
