import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from services.generate.marks import Marks, Statements, marks, statements
from services.generate.sentences import sentences
from tests.generate.split import ANSWERS, deltas

LABELS = r"S[0-9]{1,4}(?:\s*[,;\u3001\uff0c\uff1b]\s*S[0-9]{1,4})*"
MARK = re.compile(rf"[\[\uff3b\u3010]{{1,2}}\s*{LABELS}\s*[\]\uff3d\u3011]{{1,2}}")


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


@settings(deadline=None)
@given(ANSWERS)
@example("[[ [S1]] [[[S2]]] [S3")
def test_marks_are_what_their_pattern_says(text: str) -> None:
    found = [(mark.span.start, mark.span.end, mark.labels) for mark in marks(text)]
    assert found == [
        (*mark.span(), tuple(re.findall(r"S\d+", mark[0], re.ASCII)))
        for mark in MARK.finditer(text)
    ]


@settings(deadline=None)
@given(st.data())
def test_an_answer_in_deltas_falls_into_the_same_pieces(data: st.DataObject) -> None:
    text = data.draw(ANSWERS)
    reader, known = Marks(), 0
    found: list[tuple[str, ...]] = []
    for delta in data.draw(deltas(text)):
        pieces = reader.take(delta)
        known += sum(len(piece.text) for piece in pieces)
        found += [piece.labels for piece in pieces if piece.labels]
        assert found == labels(text)[: len(found)]
    pieces = reader.rest()
    found += [piece.labels for piece in pieces if piece.labels]
    assert found == labels(text)
    assert known + sum(len(piece.text) for piece in pieces) == len(text)


def test_only_what_may_become_a_mark_is_held() -> None:
    reader = Marks()
    shown = ["".join(piece.text for piece in reader.take(sign)) for sign in "a[1] b[S1, x [S2]."]
    assert shown == [*"a", "", "[1", *"] b", *[""] * 5, "[S1, x", " ", *[""] * 4, "[S2]."]


@settings(deadline=None)
@given(st.data())
def test_statements_are_told_in_deltas_as_from_the_whole(data: st.DataObject) -> None:
    text = data.draw(ANSWERS)
    reader, told, found = Marks(), Statements(), []
    for delta in data.draw(deltas(text)):
        found += told.take(reader.take(delta))
        assert found == statements(text)[: len(found)]
    found += [*told.take(reader.rest()), *told.rest()]
    assert found == statements(text)
    plain = MARK.sub(lambda mark: " " * len(mark[0]), text)
    assert [statement.text for statement in found] == [s.of(plain) for s in sentences(plain)]


def test_a_statement_is_told_when_no_further_mark_can_be_its_own() -> None:
    reader, told = Marks(), Statements()
    assert told.take(reader.take("Ships wait. [S1] ")) == []
    assert told.take(reader.take("[S2] Mo")) == []
    (statement,) = told.take(reader.take("re..."))
    assert (statement.text, statement.labels) == ("Ships wait.", ("S1", "S2"))
