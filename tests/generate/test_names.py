import pytest

from services.generate.names import beginnings, names, stands_for


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("Ask Lantern about SEV1. The ship waits at Port Verrin.", "en", [
            "Lantern", "SEV1", "Port", "Verrin",
        ]),
        ("Open KubePod and snake_case, version 1.2.3, for 500 MB.", "en", [
            "KubePod", "snake_case", "1.2.3",
        ]),
        ("The limit: Five ships. \u201cHello\u201d", "en", []),
        ("Die Wartung der Automaten in Lysund nach E17 und Ü3b", "de", ["Lysund", "E17", "Ü3b"]),
        ("Skarholm行きの船とGangwayの船", "ja", ["Skarholm", "Gangway"]),
    ],
)  # fmt: skip
def test_names_are_capitals_where_none_is_due_and_identifiers(
    text: str, language: str, expected: list[str]
) -> None:
    assert names(text, language) == expected


def test_a_word_that_begins_a_sentence_may_be_a_name() -> None:
    found = beginnings("Lantern calls. Then Beacon: Gangway waits")
    assert found == [("Lantern", "calls"), ("Then", "beacon"), ("Gangway", "waits")]


def test_another_word_with_the_same_verb_stands_for_a_name() -> None:
    told = beginnings("Lantern calls the lead. Start the renewal.")
    assert stands_for(told, ("Beacon", "calls"))
    assert not stands_for(told, ("Beacon", "waits"))
    assert not stands_for(told, ("Begin", "the"))
    assert not stands_for(told, ("Passengers", "calls"))
