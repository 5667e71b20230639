from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.generate.sentences import Span, Splitter, lines, sentences, trimmed
from tests.generate.split import ANSWERS, deltas


def split(text: str) -> list[str]:
    return [span.of(text) for span in sentences(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("See e.g. the list. Use 1.5 GB.", ["See e.g. the list.", "Use 1.5 GB."]),
        ("Dr. Maar said no. He left.", ["Dr. Maar said no.", "He left."]),
        ("Das gilt z. B. hier. Dort nicht.", ["Das gilt z. B. hier.", "Dort nicht."]),
        ('He said "stop." Then he left.', ['He said "stop."', "Then he left."]),
        ("Version 2.0 is out, v. 3 is not.", ["Version 2.0 is out, v. 3 is not."]),
        ("First line\ngoes on.\n\nSecond.", ["First line\ngoes on.", "Second."]),
        ("- one item\n- two. Three.\n", ["one item", "two.", "Three."]),
        ("1. Stop the queue\n2. Start it", ["Stop the queue", "Start it"]),
        ("船は九時に出る。遅れない。", ["船は九時に出る。", "遅れない。"]),
        ("The limit is 12. Ask the lead.", ["The limit is 12.", "Ask the lead."]),
        ("Am 3. Februar gilt es. See no. 7 too.", ["Am 3. Februar gilt es.", "See no. 7 too."]),
        ("Is it really...? Yes.", ["Is it really...?", "Yes."]),
        ("", []),
        (" \n\n ", []),
    ],
)
def test_sentences_end_where_a_reader_ends_them(text: str, expected: list[str]) -> None:
    assert split(text) == expected


@given(st.text(alphabet="aB.!?。 \n\t-1)\"'é", max_size=80))
def test_every_character_that_is_seen_is_in_one_sentence_or_a_list_mark(text: str) -> None:
    spans = sentences(text)
    assert all(one.end <= other.start for one, other in pairwise(spans))
    assert all(span.of(text) == span.of(text).strip() != "" for span in spans)
    shown = "".join(span.of(text) for span in spans)
    assert shown.count("a") == text.count("a")
    assert shown.count("B") == text.count("B")


def test_lines_keep_what_stands_in_them() -> None:
    text = "  kubectl get pods \n\n\tsecond\r\nlast"
    assert [span.of(text) for span in lines(text)] == ["kubectl get pods", "second", "last"]


@settings(deadline=None)
@given(st.data())
def test_sentences_of_a_text_that_comes_in_deltas_are_those_of_the_whole(
    data: st.DataObject,
) -> None:
    text = data.draw(ANSWERS)
    splitter, parts = Splitter(), []
    for delta in data.draw(deltas(text)):
        parts += splitter.take(delta)
        told = list(filter(None, (trimmed(text, part) for part in parts)))
        assert told == sentences(text)[: len(told)]
        begun = splitter.opened
        assert begun is None or begun in {span.start for span in sentences(text)[len(told) :]}
    parts += splitter.rest()
    assert list(filter(None, (trimmed(text, part) for part in parts))) == sentences(text)


def test_a_sentence_is_told_when_the_next_has_begun() -> None:
    splitter = Splitter()
    assert splitter.take("One. Thr") == []
    assert splitter.take("ee") == [Span(0, 4)]
    assert splitter.opened == 5
