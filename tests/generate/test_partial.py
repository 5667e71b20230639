import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.generate.contract import InvalidOutput, read
from services.generate.partial import Partial
from tests.generate.split import ANSWERS, deltas, replies

REPLY = '{"status": "answered", "answer": "At nine. [S1]", "source_ids": ["S1"]}'


def answer(reply: str) -> tuple[str, str]:
    """What is read of a reply that comes one character at a time."""
    partial = Partial()
    text = "".join([partial.take(sign) for sign in reply])
    return partial.status, text


@settings(deadline=None)
@given(st.data())
def test_any_reply_in_any_deltas_is_read_as_the_whole_is(data: st.DataObject) -> None:
    expected = data.draw(ANSWERS)
    reply = data.draw(replies(expected))
    partial, shown = Partial(), ""
    for delta in data.draw(deltas(reply)):
        shown += partial.take(delta)
        assert expected.startswith(shown)
    assert (shown, partial.status) == (expected, "answered")
    object_in_it = reply[reply.index("{") : reply.rindex("}") + 1]
    assert shown == json.loads(object_in_it)["answer"]


@settings(deadline=None)
@given(st.data())
def test_what_the_contract_reads_is_never_read_otherwise(data: st.DataObject) -> None:
    """Replies with a change somewhere: the partial reader may be laxer, but tells nothing else."""
    reply = data.draw(replies(data.draw(ANSWERS)))
    at = data.draw(st.integers(0, len(reply)))
    length = data.draw(st.integers(0, 3))
    other = data.draw(
        st.sampled_from(["", '"', "\\", "\\u", "{", "}", "[", ",", ":", " ", "`", "\ud83d"])
    )
    changed = reply[:at] + other + reply[at + length :]
    try:
        expected = read(changed, frozenset({"S1", "S2", "S3", "S12"})).text
    except InvalidOutput:
        expected = None
    try:
        status, text = answer(changed)
    except InvalidOutput:
        assert expected is None
    else:
        assert expected is None or status == "insufficient" or text == expected


def test_the_text_grows_with_every_delta_and_the_status_is_known_when_it_is_whole() -> None:
    partial = Partial()
    assert (partial.take('{"status": "answere'), partial.status) == ("", "")
    assert (partial.take('d", "answer": "A\\'), partial.status) == ("A", "answered")
    assert [partial.take(delta) for delta in ("n", "\\u00", "e9\\ud83d", "\\udea2", ' b"')] == [
        "\n", "", "é", "🚢", " b",
    ]  # fmt: skip
    assert partial.take(', "source_ids": []}') == ""


@pytest.mark.parametrize(
    "broken",
    [
        "The ship leaves at nine.",
        "null",
        '["answered"]',
        "```python\n" + REPLY,
        REPLY + "{}",
        REPLY + "\n```",
        "```json\n" + REPLY + "\n```\nMore.",
        '{"status": "maybe"',
        '{"status": null',
        '{"status": "answered", "answer": null',
        '{"status": "answered", "answer": ["x"',
        '{"status": "answered", "status": "insufficient"',
        '{"answer": "x", "answer": "y"',
        '{"answer" "x"',
        '{"answer": "x" "status"',
        '{answer: "x"',
        '{"more": {"x": [1, 2}, "answer": "x"',
        '{"more": , "answer": "x"',
        '{"answer": "a\nb',
        '{"answer": "\\x',
        '{"answer": "\\u00g0',
        '{"answer": "\\ud83d!!!!!!',
        '{"answer": "\\ud83d\\u0041',
        '{"answer": "\\udea2 ships',
        '{"answer": "\ud83d',
    ],
)
def test_what_can_be_no_answer_any_more_is_refused_where_that_shows(broken: str) -> None:
    with pytest.raises(InvalidOutput):
        answer(broken)


def test_nothing_more_is_told_after_a_refusal() -> None:
    partial = Partial()
    with pytest.raises(InvalidOutput):
        partial.take('{"answer": "x", "answer": "y')
    assert partial.take('z"}') == ""


def test_values_that_nest_very_deep_are_passed_over() -> None:
    deep = 50_000
    reply = f'{{"more": {"[" * deep}{"]" * deep}, "status": "answered", "answer": "x"}}'
    assert answer(reply) == ("answered", "x")
