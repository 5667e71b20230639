import pytest

from services.generate.question import read


def test_a_double_question_has_two_parts() -> None:
    asked = read("How long is the list kept, and who may read it in March?")
    assert [part.terms for part in asked.parts] == [("list", "kept"), ("read", "march")]


def test_what_is_only_told_is_no_part() -> None:
    asked = read("My ship was late. Who pays the hotel?")
    assert [part.terms for part in asked.parts] == [("pays", "hotel")]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("What does KubePodNotReady mean?", ("kubepodnotready",)),
        ("When is SEV1 declared at Lysund?", ("sev1", "lysund")),
        ("Which port does node_exporter use?", ("node_exporter",)),
        ("Was bedeutet die Meldung E17 am Automaten?", ("e17",)),
        ("Who is on call?", ()),
        ("I am late. Who decides?", ()),
    ],
)
def test_names_are_found_where_a_capital_means_something(text: str, names: tuple[str, ...]) -> None:
    assert read(text).names == names


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("How many scans are stored?", (True, False, "scans")),
        ("How long is footage kept?", (True, False, "")),
        ("Bis wann muss die Liste da sein?", (True, False, "")),
        ("Quantos dias dura o prazo?", (True, False, "dias")),
        ("What does a cabin cost?", (False, True, "")),
        ("Why was it closed?", (False, False, "")),
    ],
)
def test_the_kind_of_answer_is_read(text: str, wanted: tuple[bool, bool, str]) -> None:
    (part,) = read(text).parts
    assert (part.wants_number, part.wants_money, part.counted) == wanted


@pytest.mark.parametrize("text", ["", "?", "How?", "...", "and who?"])
def test_a_question_without_content_has_no_parts(text: str) -> None:
    assert read(text).parts == ()
