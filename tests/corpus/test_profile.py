import pytest

from corpus.profile import DEFAULT, PROFILES, EmbeddingProfile, profile


def test_e5_marks_passages_and_questions() -> None:
    e5 = profile("multilingual-e5-small")
    assert e5.document_input("Disk", "Steps", "Free it.") == "passage: Disk\nSteps\nFree it."
    assert e5.query_input("Why?") == "query: Why?"


def test_an_empty_heading_takes_no_line() -> None:
    assert profile(DEFAULT).document_input("Disk", "", "Free it.") == "passage: Disk\nFree it."


def test_braces_in_a_document_are_only_text() -> None:
    gemma = profile("embeddinggemma-300m")
    assert gemma.document_input("{text}", "", "{title} {}") == "title: {text} | text: {title} {}"


def test_an_unknown_profile_is_refused_with_the_ones_there_are() -> None:
    with pytest.raises(ValueError, match="'e6' is no embedding profile; there are multilingual"):
        profile("e6")


@pytest.mark.parametrize("shipped", PROFILES.values(), ids=PROFILES)
def test_the_usual_budget_of_a_profile_is_within_its_limit(shipped: EmbeddingProfile) -> None:
    assert 0 < shipped.chunk_tokens <= shipped.input_limit
