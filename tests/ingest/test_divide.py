import tracemalloc

import pytest
import regex  # type: ignore[import-untyped] # published without types
from hypothesis import given, settings
from hypothesis import strategies as st

from corpus.points import Kind
from services.ingest.divide import Piece, pieces
from services.ingest.document import Block
from services.ingest.markdown import sections
from services.ingest.stop import Stop, Stopped


def divided(text: str, limit: int, kind: Kind = Kind.PARAGRAPH) -> list[str]:
    """The pieces of a text of one kind, each within `limit` characters."""
    block = Block(kind, 0, len(text))
    return [text[p.start : p.end] for p in pieces(text, block, lambda part: len(part) <= limit)]


def parsed(text: str, limit: int) -> list[Piece]:
    (block,) = sections(text, 0)[0].blocks
    return pieces(text, block, lambda part: len(part) <= limit)


def test_what_fits_is_one_piece() -> None:
    assert pieces("ab", Block(Kind.PARAGRAPH, 0, 2), lambda part: True) == [Piece(0, 2)]


def test_prose_is_divided_at_sentence_ends() -> None:
    text = 'One is here. "Two is!" Then three? (Four.) Version 1.2 is five.'
    assert divided(text, 26) == [
        'One is here. "Two is!"',
        "Then three? (Four.)",
        "Version 1.2 is five.",
    ]


def test_sentences_of_scripts_without_spaces_are_found() -> None:
    text = "今日は晴れです。明日は雨です！明後日は？"  # noqa: RUF001 - they are meant
    assert divided(text, 9) == ["今日は晴れです。", "明日は雨です！", "明後日は？"]  # noqa: RUF001


def test_a_long_sentence_is_divided_at_words() -> None:
    assert divided("one two three four", 9) == ["one two", "three", "four"]


def test_a_long_word_is_divided_between_what_readers_see_as_characters() -> None:
    family = "👩\u200d👩\u200d👧"
    assert divided(family * 4, 12) == [family * 2, family * 2]
    assert divided("e\u0301" * 5, 3) == ["e\u0301"] * 5


def test_a_character_larger_than_the_limit_is_divided_as_a_last_resort() -> None:
    text = "a" + "\u0301" * 9
    assert "".join(divided(text, 4)) == text
    assert divided("ab", 0) == ["a", "b"]


def test_a_mark_on_a_sentence_end_is_not_torn_off() -> None:
    assert divided("。\u0301。\u0301", 3) == ["。\u0301", "。\u0301"]


def test_a_list_is_divided_at_its_items_then_lines() -> None:
    text = "- one\n- two\n  - in\n- three\n- a long item\n  of two lines"
    found = [text[piece.start : piece.end] for piece in parsed(text, 18)]
    assert found == [
        "- one\n- two\n  - in",
        "- three",
        "- a long item",
        "  of two lines",
    ]


def test_code_is_divided_at_lines_and_keeps_indentation() -> None:
    assert divided("if a:\n    b()\n\n\n    c()\nd()", 14, Kind.CODE) == [
        "if a:\n    b()",
        "    c()\nd()",
    ]


def test_every_piece_of_a_table_has_the_header_and_whole_rows() -> None:
    header = "| k | v |\n|---|---|"
    rows = [f"| {number} | {number} |" for number in range(100, 140)]
    text = "\n".join([header, *rows])
    found = parsed(text, 60)
    assert found[0].context == ""
    assert text[found[0].start : found[0].end].startswith(header + "\n| 100")
    assert {piece.context for piece in found[1:]} == {header}
    shown = [row for piece in found for row in text[piece.start : piece.end].split("\n")]
    assert shown == [*header.split("\n"), *rows]
    assert all(len(f"{p.context}\n{text[p.start : p.end]}") <= 60 for p in found[1:])


def test_a_row_too_large_is_divided_under_its_header() -> None:
    text = f"| k |\n|---|\n| {'word ' * 20}|\n| z |"
    found = parsed(text, 40)
    assert len(found) > 2
    assert {piece.context for piece in found[1:]} == {"| k |\n|---|"}


def test_a_header_too_large_to_be_repeated_is_divided_like_rows() -> None:
    text = f"| {'head ' * 9}|\n|---|\n| a |"
    assert {piece.context for piece in parsed(text, 30)} == {""}


CLUSTERS = ["👍🏽", "👩\u200d👩\u200d👧", "🇧🇷", "e\u0301", " ", "\u200d", "\u0301", "क्षि"]
scripts = st.one_of(
    st.text("ab .!?\n", max_size=200),
    st.text("你好。，世界ー", max_size=120),  # noqa: RUF001 - they are meant
    st.lists(st.sampled_from(CLUSTERS), max_size=60).map("".join),
    st.text("ابت؟ \u064b", max_size=120),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=80),
)


@settings(max_examples=300, deadline=None)
@given(scripts, st.integers(1, 40), st.sampled_from([Kind.PARAGRAPH, Kind.CODE, Kind.LIST]))
def test_nothing_is_lost_torn_or_over_the_limit(text: str, limit: int, kind: Kind) -> None:
    block = Block(kind, 0, len(text))
    found = pieces(text, block, lambda part: len(part) <= limit)
    rest, last = text, 0
    edges = {0, *(match.end() for match in regex.finditer(r"\X", text))}
    widest = max((len(cluster) for cluster in regex.findall(r"\X", text)), default=0)
    for piece in reversed(found):
        rest = rest[: piece.start] + rest[piece.end :]
    for piece in found if len(text) > limit else []:
        assert last <= piece.start < piece.end
        assert piece.end - piece.start <= limit
        last = piece.end
        if widest <= limit:
            assert {piece.start, piece.end} <= edges | _blank_edges(text)
    assert rest.strip() == ""


def _blank_edges(text: str) -> set[int]:
    """Next to blanks, which are left out, a mark that stood on the blank may begin a piece."""
    return {position for position in range(1, len(text) + 1) if text[position - 1].isspace()}


@pytest.mark.parametrize("kind", list(Kind))
def test_a_large_block_ends_in_good_time(kind: Kind) -> None:
    text = "word" * 50_000
    block = Block(kind, 0, len(text), (0,))
    found = pieces(text, block, lambda part: len(part) <= 100)
    assert 2_000 <= len(found) <= 2_100


def test_dividing_a_long_word_takes_few_bytes_a_character() -> None:
    length = 200_000
    tracemalloc.start()
    found = divided("x" * length, length // 8)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert "".join(found) == "x" * length
    assert peak < 16 * length


def test_a_word_without_end_is_left_as_soon_as_nobody_waits_for_its_pieces() -> None:
    stop, measured = Stop(), list[int]()

    def fits(part: str) -> bool:
        measured.append(len(part))
        stop.ask()
        return False

    with pytest.raises(Stopped):
        pieces("x" * 100_000, Block(Kind.PARAGRAPH, 0, 100_000), fits, stop=stop)
    assert set(measured) == {100_000}  # no part of it
