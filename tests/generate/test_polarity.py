import pytest

from services.generate.polarity import Bound, bounds, contradicts, is_negated


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Ships don\u2019t wait.", "en"),
        ("Nobody waits.", "en"),
        ("Leave without a list.", "en"),
        ("Fotos sind verboten.", "de"),
        ("Os objetos nunca ficam no cais.", "pt"),
        ("No se cargan autobuses.", "es"),
        ("Le pont n'est pas ouvert.", "fr"),
        ("入ることができません。", "ja"),
        ("不能进入。", "zh"),
    ],
)
def test_a_denial_is_seen_in_every_language(text: str, language: str) -> None:
    assert is_negated(text, language)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("No later than 15 minutes before departure.", "en"),
        ("A ship may not leave without a list.", "en"),
        ("Ficam no cais.", "pt"),
        ("Nicht mehr als 20 Kilogramm.", "de"),
        ("大小不超过20 GB。", "zh"),
    ],
)
def test_what_denies_nothing_is_none(text: str, language: str) -> None:
    assert not is_negated(text, language)


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("at least 3 days", Bound.LEAST),
        ("no more than 3 days", Bound.MOST),
        ("h\u00f6chstens drei Tage", Bound.MOST),
        ("pelo menos tr\u00eas dias", Bound.LEAST),
        ("no later than Monday", Bound.LATEST),
        ("fr\u00fchestens am Montag", Bound.EARLIEST),
    ],
)
def test_bounds_are_told_apart(text: str, bound: Bound) -> None:
    assert bounds(text) == {bound}


def test_only_the_opposite_bound_contradicts() -> None:
    least, most = frozenset({Bound.LEAST}), frozenset({Bound.MOST})
    assert contradicts(least, most)
    assert not contradicts(least, least | most)
    assert not contradicts(least, frozenset())
    assert not contradicts(frozenset(), most)
