import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.generate.marks import marks, statements


def labels(text: str) -> list[tuple[str, ...]]:
    return [mark.labels for mark in marks(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a [S1]", [("S1",)]),
        ("a [S1][S2]", [("S1",), ("S2",)]),
        ("a [S1, S2; S10]", [("S1", "S2", "S10")]),
        ("a \u3010S1\u3011 b \uff3bS2\u3001S3\uff3d", [("S1",), ("S2", "S3")]),
        ("a [[S4]]", [("S4",)]),
        ("a [ S1 ]", [("S1",)]),
    ],
)
def test_every_way_of_writing_a_mark_is_understood(
    text: str, expected: list[tuple[str, ...]]
) -> None:
    assert labels(text) == expected


@pytest.mark.parametrize(
    "text",
    ["arr[0]", "[abc]", "[1.5]", "[1]", "[S]", "[s1]", "[SLA]", "[S1", "S1]", "[S1 and S2]", "[]"],
)
def test_other_brackets_are_text(text: str) -> None:
    assert labels(text) == []


def test_a_mark_belongs_to_the_sentence_around_or_before_it() -> None:
    text = "Ships wait [S1] here. They leave at 9. [S2] [S3] Nobody knows."
    found = [(text[s.span.start : s.span.end], s.labels) for s in statements(text)]
    assert found == [
        ("Ships wait [S1] here.", ("S1",)),
        ("They leave at 9. [S2] [S3]", ("S2", "S3")),
        ("Nobody knows.", ()),
    ]


def test_a_mark_before_the_first_word_belongs_to_the_first_sentence() -> None:
    text = "[S1] Ships wait."
    (statement,) = statements(text)
    assert (statement.span.start, statement.span.end, statement.labels) == (0, 16, ("S1",))
    assert statement.text == "Ships wait."


def test_offsets_are_code_points() -> None:
    text = "🚢 Fähre wartet. [S1] 🚢 Nächste. [S2]"
    found = [text[s.span.start : s.span.end] for s in statements(text)]
    assert found == ["🚢 Fähre wartet. [S1]", "🚢 Nächste. [S2]"]


@given(st.text(alphabet="aB. [S12],\n\u3010\u3011", max_size=60))
def test_no_text_breaks_it_and_every_mark_is_cited_once(text: str) -> None:
    told = statements(text)
    assert all(0 <= s.span.start < s.span.end <= len(text) for s in told)
    cited = {label for s in told for label in s.labels}
    assert cited == ({label for mark in marks(text) for label in mark.labels} if told else cited)
