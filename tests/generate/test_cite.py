from services.generate.cite import cited
from tests.generate.sources import prose, source

SOURCES = (
    source("S1", prose("The window opens at 09:30. It closes at 15:30.")),
    source("S2", prose("Fixes may go out at any hour.")),
)


def test_each_sentence_is_cited_with_its_marks_and_support() -> None:
    text = "The window opens at 09:30. [S1] Fixes go out at any hour [S2]."
    found = cited(text, SOURCES)
    assert [(c.label, text[c.start : c.end], c.support) for c in found.citations] == [
        ("S1", "The window opens at 09:30. [S1]", 1.0),
        ("S2", "Fixes go out at any hour [S2].", 1.0),
    ]
    assert found.support == 1


def test_one_sentence_that_its_source_does_not_carry_decides() -> None:
    found = cited("The window opens at 09:30. [S1] Fixes go out at any hour. [S1]", SOURCES)
    assert found.support < 0.5


def test_a_sentence_that_cites_two_is_judged_by_both() -> None:
    found = cited("The window opens at 09:30 and fixes go out at any hour. [S1][S2]", SOURCES)
    assert [citation.label for citation in found.citations] == ["S1", "S2"]
    assert found.support > max(citation.support for citation in found.citations)


def test_text_without_a_mark_has_to_be_carried_all_the_same() -> None:
    assert cited("The window opens at 09:30. It closes at 15:30. [S1]", SOURCES).support == 1
    assert cited("Penguins eat fish daily. It closes at 15:30. [S1]", SOURCES).support < 0.5


def test_an_answer_that_cites_nothing_has_no_support() -> None:
    assert cited("The window opens at 09:30.", SOURCES).support == 0
