import json
from contextlib import suppress
from typing import Literal

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from services.generate.cite import Carriers
from services.generate.contract import InvalidOutput
from services.generate.marks import marks, statements
from services.generate.release import Release
from tests.generate.sources import prose, source
from tests.generate.split import ANSWERS, deltas, pieces, replies

FLOOR = 0.5
SOURCES = (
    source("S1", prose("The window opens at 09:30. It closes at 15:30.")),
    source("S2", prose("Ships wait until dawn. Fixes may go out at any hour.")),
)
LABELS = frozenset({"S1", "S2"})
By = Literal["sentence", "token"]
WAYS: tuple[By, ...] = ("sentence", "token")
SAID = [
    "The window opens at 09:30. [S1]",
    "It closes at 15:30 [S1].",
    "Ships wait until dawn. [S2][S1]",
    "Fixes go out at any hour \u3010S2\u3011!",
    "It opens at 09:30.",
    "Whales sing in the fjords. [S1]",
    "The window opens at 08:15. [S1]",
    "arr[0] opens. [S1]",
    "Ships [S3] wait.",
]
TEXTS = ANSWERS | st.lists(st.sampled_from(SAID), max_size=6).map(" ".join)


def reply(answer: str, status: str = "answered") -> str:
    return json.dumps({"status": status, "answer": answer, "source_ids": ["S1", "S2"]})


def release(by: By) -> Release:
    return Release(SOURCES, floor=FLOOR, by=by)


def shown(by: By, reply: str, size: int = 1) -> list[str]:
    """What is shown of a reply, delta by delta, without the empty ones."""
    return list(filter(None, map(release(by).take, pieces(reply, [size]))))


def may_be_shown(by: By, answer: str, waiting_for: int = 1) -> str:
    """The most that may be shown of an answer before its end: all but so many last sentences."""
    foreign = [mark.span.start for mark in marks(answer) if not LABELS.issuperset(mark.labels)]
    if by == "token":
        return answer[: min(foreign, default=len(answer))]
    end, seen = 0, dict[str, None]()
    carriers, waiting = Carriers(SOURCES), []
    for told in statements(answer)[:-waiting_for]:
        waiting.append(told)
        seen |= dict.fromkeys(told.labels)
        for each in waiting if told.labels else ():
            if not LABELS.issuperset(told.labels):
                return answer[:end]
            if carriers.support(each, each.labels or seen) < FLOOR:
                return answer[:end]
            end = each.span.end
        waiting = [] if told.labels else waiting
    return answer[:end]


@pytest.mark.parametrize("by", WAYS)
@settings(deadline=None)
@given(st.data())
@example(None)
def test_what_is_shown_is_a_beginning_of_the_answer_and_may_be_shown(
    by: By, data: st.DataObject | None
) -> None:
    if data is None:
        answer, cut = " ".join(SAID), list(reply(" ".join(SAID)))
    else:
        answer = data.draw(TEXTS)
        cut = data.draw(deltas(data.draw(replies(answer))))
    taking, joined = release(by), ""
    most = may_be_shown(by, answer)
    try:
        for delta in cut:
            joined += taking.take(delta)
            assert most.startswith(joined)
    except InvalidOutput:
        assert not LABELS.issuperset(label for mark in marks(answer) for label in mark.labels)
    else:
        # What may become a mark waits, and two sentences do where the last is very short.
        opened = max(answer.rfind(sign) for sign in "[\uff3b\u3010")
        unmarked = answer[: max(opened - 1, 0)] if opened >= 0 else answer
        assert joined.startswith(may_be_shown(by, unmarked, 2) if by == "sentence" else unmarked)


@pytest.mark.parametrize("by", WAYS)
@settings(deadline=None)
@given(st.data())
def test_nothing_is_shown_of_an_answer_that_is_none(by: By, data: st.DataObject) -> None:
    whole = data.draw(replies(data.draw(TEXTS), status="insufficient"))
    taking = release(by)
    assert not any(map(taking.take, data.draw(deltas(whole))))


@pytest.mark.parametrize("by", WAYS)
@settings(deadline=None)
@given(st.data())
def test_what_was_shown_of_a_reply_that_is_cut_was_right(by: By, data: st.DataObject) -> None:
    answer = data.draw(TEXTS)
    whole = data.draw(replies(answer))
    cut = data.draw(deltas(whole[: data.draw(st.integers(0, len(whole)))]))
    taking, joined = release(by), ""
    with suppress(InvalidOutput):
        for delta in cut:
            joined += taking.take(delta)
    assert may_be_shown(by, answer).startswith(joined)


def test_a_sentence_is_shown_when_what_follows_cannot_be_its_mark() -> None:
    taking = release("sentence")
    taking.take('{"status": "answered", "answer": "')
    steps = [
        "The window opens at 09:30.",
        " [S",
        "1",
        "] ",
        "[S2]",
        " It cl",
        "oses at 15:30. [S1]",
    ]
    assert [taking.take(step) for step in steps] == [
        "", "", "", "", "", "The window opens at 09:30. [S1] [S2]", "",
    ]  # fmt: skip
    assert taking.take('", "source_ids": ["S1", "S2"]}') == ""


def test_a_sentence_without_a_mark_is_shown_with_the_next_that_has_one() -> None:
    found = shown("sentence", reply("It opens at 09:30. It closes at 15:30. [S1] Ships wait. [S2]"))
    assert found == ["It opens at 09:30. It closes at 15:30. [S1]"]


def test_the_first_sentence_that_its_sources_do_not_carry_ends_it() -> None:
    answer = "It opens at 09:30. [S1] It opens at 07:10. [S1] Ships wait until dawn. [S2]"
    assert shown("sentence", reply(answer)) == ["It opens at 09:30. [S1]"]


def test_tokens_are_shown_at_once_but_for_what_may_become_a_mark() -> None:
    taking = release("token")
    taking.take('{"status": "answered", "answer": "')
    steps = ["Ships", " wait", " [", "1] or", " [", "S1", "]", " arr[0", "] [S", "2]"]
    assert [taking.take(step) for step in steps] == [
        "Ships", " wait", " ", "[1] or", " ", "", "", "[S1] arr[0", "] ", "",
    ]  # fmt: skip


@pytest.mark.parametrize("by", WAYS)
def test_text_that_comes_before_the_status_waits_for_it(by: By) -> None:
    taking = release(by)
    assert taking.take('{"source_ids": ["S1"], "answer": "It opens at 09:30. [S1] It') == ""
    assert taking.take(' closes at 15:30. [S1]", "status": "answer') == ""
    assert (
        taking.take('ed"')
        == {
            "sentence": "It opens at 09:30. [S1]",
            "token": "It opens at 09:30. [S1] It closes at 15:30. ",
        }[by]
    )


@pytest.mark.parametrize("by", WAYS)
@pytest.mark.parametrize(
    "broken",
    [
        '{"status": "maybe"',
        '{"status": "answered", "answer": "x [S3] ',
        '{"status": "answered", "answer": "x [S1, S9]. ',
        '{"status": "answered", "answer": "x \u3010S9\u3011. ',
        '{"status": "answered", "answer": 7',
        "The window opens at 09:30.",
    ],
)
def test_a_reply_that_nothing_can_mend_is_refused_at_once(by: By, broken: str) -> None:
    with pytest.raises(InvalidOutput):
        shown(by, broken + " " * 20)
