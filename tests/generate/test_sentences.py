from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.generate.sentences import lines, sentences


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
