import pytest

from services.generate.words import content, language, likeness, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("KubePodCrashLooping", ["kube", "pod", "crash", "looping"]),
        ("HTTPServer at 09:30", ["http", "server", "at", "09:30"]),
        ("25,000 euros, 1.5 GB", ["25000", "euros", "1.5", "gb"]),
        ("Fähre, São João", ["fahre", "sao", "joao"]),
        ("snake_case-and.dots", ["snake", "case", "and", "dots"]),
        ("船は", ["船は"]),
        ("渡し船", ["渡し", "し船"]),
    ],
)
def test_words_are_folded_and_numbers_stay_whole(text: str, expected: list[str]) -> None:
    assert words(text) == expected


def test_words_without_a_subject_are_left_out() -> None:
    assert content("How long is the summer freeze, and when is the freeze?") == ["summer", "freeze"]
    assert content("Wie lange werden Aufnahmen aufbewahrt?") == ["aufnahmen", "aufbewahrt"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("refund", "refunded"),
        ("rotation", "rotated"),
        ("approve", "approval"),
        ("keep", "kept"),
        ("aktualisiert", "aktualisierung"),
        ("guardado", "guardados"),
        ("ticketpreis", "preis"),
    ],
)
def test_inflected_words_are_alike(one: str, other: str) -> None:
    assert likeness(one, other) == likeness(other, one) > 0.6


@pytest.mark.parametrize(
    ("one", "other"), [("port", "portal"), ("60", "600"), ("gate", "grate"), ("1.5", "15")]
)
def test_other_words_and_numbers_are_not(one: str, other: str) -> None:
    assert likeness(one, other) == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("When does the shift change hands?", "en"),
        ("Wann werden die Automaten gewartet?", "de"),
        ("Quando é que o navio parte para a ilha?", "pt"),
        ("SEV1 Capstan 42", ""),
    ],
)
def test_the_language_is_read_from_the_small_words(text: str, expected: str) -> None:
    assert language(text) == expected
