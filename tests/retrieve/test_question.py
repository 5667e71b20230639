import pytest

from chassis.errors import InvalidInput
from corpus.tokens import bound
from services.retrieve.question import CHARACTERS, Query, normalised, query
from tests.retrieve.engine import SMALL


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ("  What\n\tnow? ", "What now?"),
        ("a\u00a0b\u3000c\u2028d", "a b c d"),
        ("e\u0301", "\u00e9"),
        ("\u212b", "\u00c5"),
        (" " * 50_000 + "x" * CHARACTERS + "\n", "x" * CHARACTERS),
    ],
)
def test_white_space_and_composition_make_no_difference(asked: str, text: str) -> None:
    assert normalised(asked) == text


@pytest.mark.parametrize("asked", ["", " ", "\n\t\u3000", "x" * (CHARACTERS + 1)])
def test_nothing_and_too_much_are_refused(asked: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        normalised(asked)
    assert refused.value.field == "question"


@pytest.mark.parametrize("control", [*"\x00\x01\x08\x0b\x0c\x0e\x1f"])
def test_control_characters_are_refused_wherever_they_stand(control: str) -> None:
    for asked in (f"a{control}b", f"{control}why?", f"why?{control}"):
        with pytest.raises(InvalidInput) as refused:
            normalised(asked)
        assert refused.value.field == "question"


def test_the_profiles_template_is_applied_and_counted() -> None:
    text = "query: What now?"
    assert query(" What  now?", SMALL, bound) == Query(text, bound(text))


def test_what_the_model_would_cut_is_refused_with_both_numbers() -> None:
    fits = "x" * (SMALL.input_limit - bound("query: "))
    assert query(fits, SMALL, bound).tokens == SMALL.input_limit
    with pytest.raises(InvalidInput) as refused:
        query(f"{fits}x", SMALL, bound)
    assert refused.value.metadata == {"tokens": "65", "limit": "64"}
