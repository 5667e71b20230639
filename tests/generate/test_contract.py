import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chassis.errors import SluiceError
from services.generate.contract import Answer, InvalidOutput, read
from services.generate.marks import marks

ADMITTED = frozenset({"S1", "S2"})


def reply(**fields: object) -> str:
    whole = {"status": "answered", "answer": "At nine. [S1]", "source_ids": ["S1"]}
    return json.dumps({**whole, **fields}, ensure_ascii=False)


def test_an_answer_that_keeps_the_contract_comes_back_byte_for_byte() -> None:
    text = "  At\u2028nine 🚢 arr[0] [abc] [1.5]\n[S1][S2] "
    assert read(reply(answer=text, source_ids=["S1", "S2"]), ADMITTED) == Answer(
        is_sufficient=True, text=text
    )


@pytest.mark.parametrize("opening", ["```json\n", "```\n", " \r\n```json \r\n"])
def test_a_fence_around_the_object_is_taken_off(opening: str) -> None:
    assert read(f"{opening}{reply(answer='```x``` [S1]')}\n```\n", ADMITTED).text == "```x``` [S1]"


def test_an_insufficient_answer_shows_no_text() -> None:
    found = read(reply(status="insufficient", answer="nothing on it", source_ids=[]), ADMITTED)
    assert found == Answer(is_sufficient=False, text="")


def test_a_source_that_no_mark_names_is_admitted() -> None:
    assert read(reply(source_ids=["S1", "S2"]), ADMITTED).is_sufficient


@pytest.mark.parametrize(
    "broken",
    [
        "",
        "The ship leaves at nine. [S1]",
        "```json\n" + reply(),
        "```python\n" + reply() + "\n```",
        "```json\n" + reply() + "\n```\nand more",
        reply() + " and more",
        reply()[:-1] + ', "answer": "At ten. [S1]"}',
        reply()[:-1] + ', "more": {"x": 1, "x": 2}}',
        reply()[:-5],
        "null",
        "[]",
        '"answered"',
        "[" * 20_000,
        '{"status": "answered", "answer": "x [S1]"}',
        '{"answer": "x [S1]", "source_ids": ["S1"]}',
        reply(status=None),
        reply(answer=None),
        reply(answer="\u200b\u2060 [S1]"),
        reply(answer="[S1] - [S1]."),
        reply(source_ids=None),
        reply(status="maybe"),
        reply(status="ANSWERED"),
        reply(answer=""),
        reply(answer=" \n"),
        reply(answer=7),
        reply(source_ids=[]),
        reply(source_ids="S1"),
        reply(source_ids=["S1", None]),
        reply(source_ids=[1]),
        reply(source_ids=["S1", "S9"]),
        reply(source_ids=["s1"]),
        reply(answer="At nine. [S2]"),
        reply(answer="At nine. [S1, S9]"),
        reply(answer="At nine. \u3010S9\u3011"),
        '{"status": "answered", "answer": "\\ud83d [S1]", "source_ids": ["S1"]}',
        '{"status": "answered", "answer": "\ud83d [S1]", "source_ids": ["S1"]}',
    ],
)
def test_whatever_breaks_the_contract_is_refused(broken: str) -> None:
    with pytest.raises(InvalidOutput):
        read(broken, ADMITTED)


def test_the_refusal_repeats_nothing_of_the_models_text() -> None:
    with pytest.raises(InvalidOutput) as caught:
        read(reply(status="secret-word", answer=None), ADMITTED)
    assert "secret-word" not in caught.value.message
    assert caught.value.reason == "INVALID_OUTPUT"


VALUES = st.one_of(
    st.none(),
    st.text(max_size=20),
    st.integers(),
    st.sampled_from(["answered", "insufficient", "x [S1]", "x [S3]", "S1", "S3"]),
    st.lists(st.sampled_from(["S1", "S2", "S3", "", 1, None]), max_size=3),
)


@given(st.dictionaries(st.sampled_from(["status", "answer", "source_ids", "more"]), VALUES))
@example({"status": "answered", "answer": "x [S3]", "source_ids": ["S1"]})
@example({"status": "answered", "answer": "x [S1]", "source_ids": ["S1", "S2"]})
def test_nothing_is_accepted_with_a_mark_that_was_not_admitted(fields: dict[str, object]) -> None:
    assert _read_or_refused(json.dumps(fields)) <= ADMITTED


@given(st.text(alphabet='{}[]":,\\u0dS123 answeredinsufficientstatussource_ids', max_size=120))
def test_no_text_raises_anything_else(text: str) -> None:
    assert _read_or_refused(text) <= ADMITTED


@given(st.text())
def test_no_answer_text_slips_a_strange_mark_through(text: str) -> None:
    assert _read_or_refused(reply(answer=text + " [S1]")) <= ADMITTED
    assert _read_or_refused(reply(answer=text + " [S1, S2]")) <= ADMITTED


def _read_or_refused(text: str) -> frozenset[str]:
    """The labels that an accepted answer cites; none of one that was refused."""
    try:
        answer = read(text, ADMITTED)
    except SluiceError:
        return frozenset()
    assert not answer.is_sufficient or answer.text.strip()
    return frozenset(label for mark in marks(answer.text) for label in mark.labels)
