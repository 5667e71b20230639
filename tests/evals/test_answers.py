"""What came of a question against what had to come of it."""

import pytest

from evals import answers, observed
from evals.observed import Mark, Source
from tests.cli.test_command import ANSWER
from tests.evals.cases import DOCUMENTS, TEXT, abstained, answer, case, unanswerable


def test_an_answer_from_the_right_document_is_correct() -> None:
    scored = answers.score(case(expect=["Fridays are free"]), answer(), DOCUMENTS)
    assert scored.correct
    assert (scored.faults, scored.leaks) == ([], [])
    assert (scored.right_document, scored.cited, scored.evidence) == (True, 1, 1)
    assert (scored.support, scored.mean_support, scored.coverage) == (1, 1, 1)


def test_an_abstention_is_correct_exactly_where_nothing_answers() -> None:
    assert answers.score(unanswerable(), abstained(), DOCUMENTS).correct
    assert not answers.score(case(), abstained(), DOCUMENTS).correct
    assert not answers.score(unanswerable(), answer(), DOCUMENTS).correct


@pytest.mark.parametrize("mode", ["UNAVAILABLE", "QUEUED"])
def test_no_answer_is_neither_an_answer_nor_an_abstention(mode: str) -> None:
    nothing = abstained(mode=mode, reason="CAPACITY")
    assert not answers.score(case(), nothing, DOCUMENTS).correct
    assert not answers.score(unanswerable(), nothing, DOCUMENTS).correct


def test_of_an_abstention_nothing_about_content_is_said() -> None:
    scored = answers.score(case(), abstained(), DOCUMENTS)
    assert not scored.has_content
    assert {scored.cited, scored.evidence, scored.support, scored.coverage} == {None}


@pytest.mark.parametrize(
    ("mark", "fault"),
    [
        (Mark("S2", 0, len(TEXT), 1), "S2: no such source"),
        (Mark("S1", 0, len(TEXT) + 1, 1), "S1: its range is not in the text"),
        (Mark("S1", 5, 5, 1), "S1: its range is not in the text"),
        (Mark("S1", 0, 10, 1), "S1: its mark is not in its range"),
    ],
)
def test_a_citation_that_does_not_hold_is_a_fault(mark: Mark, fault: str) -> None:
    scored = answers.score(case(), answer(marks=(mark,)), DOCUMENTS)
    assert scored.faults == [fault]
    assert not scored.correct


def test_content_without_a_citation_is_a_fault() -> None:
    assert answers.score(case(), answer(marks=()), DOCUMENTS).faults == ["no citation"]


def test_a_quotation_stands_verbatim_in_its_source_and_a_models_sentence_need_not() -> None:
    sources = (Source("S1", "a.md", "They deploy each Monday.", "team"),)
    quoted = answers.score(case(), answer(sources=sources), DOCUMENTS)
    written = answers.score(case(), answer(sources=sources, mode="GENERATED"), DOCUMENTS)
    assert quoted.faults == ["S1: not verbatim in its source"]
    assert written.correct


def test_marks_of_other_scripts_and_several_at_once_are_no_part_of_a_quotation() -> None:
    text = "Deploys run on Monday. [S1] 【S1】[S1, S2]"
    marked = answer(text=text, marks=(Mark("S1", 0, len(text), 1),))
    assert answers.score(case(), marked, DOCUMENTS).faults == []


def test_a_leak_is_found_in_sources_by_rights_by_name_and_by_word() -> None:
    hidden = unanswerable(restricted=["secret.md"], secret=["four hours"])
    source = Source("S1", "draft.md", "text", "public")
    told = abstained(sources=(source,), shown="see secret.md: four hours")
    scored = answers.score(hidden, told, DOCUMENTS)
    assert scored.leaks == ["draft.md", "secret.md", "four hours"]
    assert not scored.correct


def test_expected_documents_and_strings_count_by_share() -> None:
    wanted = case(documents=["a.md", "b.md"], expect=["Monday", "Tuesday"])
    scored = answers.score(wanted, answer(), DOCUMENTS)
    assert (scored.cited, scored.evidence) == (0.5, 0.5)


def test_uncited_text_lowers_the_coverage() -> None:
    text = f"{TEXT} {TEXT}"
    half = answer(text=text, marks=(Mark("S1", 0, len(TEXT), 0.5), Mark("S1", 0, len(TEXT), 1)))
    scored = answers.score(case(), half, DOCUMENTS)
    assert scored.coverage == pytest.approx(0.5)
    assert (scored.support, scored.mean_support) == (0.5, 0.75)


def test_the_gateways_json_is_read() -> None:
    read = observed.answer(ANSWER, 0.5)
    assert (read.mode, read.marks, read.seconds) == (
        "EXTRACTIVE",
        (Mark("S1", 0, 27, 1.0),),
        0.5,
    )
    assert [source.document for source in read.cited] == ["S1.md"]
    assert read.stages["retrieve"] == pytest.approx(0.0214)
    assert "Window [draft]" in read.shown
    assert (read.candidate, read.cached, read.switched) == ("", False, False)
