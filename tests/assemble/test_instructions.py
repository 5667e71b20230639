from pathlib import Path

import pytest

from chassis.errors import InvalidInput
from services.assemble.instructions import choose, load


def test_every_locale_asks_for_the_same_contract() -> None:
    known = load()
    assert set(known) == {"de", "en", "pt"}
    for instructions in known.values():
        order = [instructions.text.index('{"status": "answered"'), *_fields(instructions.text)]
        assert order == sorted(order)
        for word in ("[S1]", '"insufficient"', '"evidence"', '"question"'):
            assert word in instructions.text


def _fields(text: str) -> list[int]:
    frame = text.index('{"status"')
    return [text.index(f'"{name}":', frame) for name in ("status", "answer", "source_ids")]


def test_the_version_names_the_locale_and_changes_with_the_text(tmp_path: Path) -> None:
    file = tmp_path / "en.txt"
    file.write_text("Answer from the evidence.")
    first = load(tmp_path)["en"].version
    file.write_text("Answer from the evidence!")
    second = load(tmp_path)["en"].version
    assert first.startswith("en-")
    assert second.startswith("en-")
    assert first != second


@pytest.mark.parametrize(
    ("asked", "language"),
    [("", "en"), ("en", "en"), ("pt", "pt"), ("pt-BR", "pt"), ("de_AT", "de"), ("DE", "de")],
)
def test_a_locale_chooses_its_language(asked: str, language: str) -> None:
    known = load()
    assert choose(known, asked) is known[language]


def test_an_unknown_locale_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidInput, match="known: de, en, pt") as refused:
        choose(load(), "fi")
    assert refused.value.field == "locale"
