import pytest

from corpus.points import Kind
from services.ingest.markdown import LABEL, sections
from services.ingest.stop import Stop, Stopped


def shown(text: str, body: int = 0) -> list[tuple[str, list[tuple[str, str]]]]:
    """Each section's path, and the kind and text of its blocks."""
    return [
        (" / ".join(section.path), [(b.kind.value, text[b.start : b.end]) for b in section.blocks])
        for section in sections(text, body)
    ]


def test_text_before_the_first_heading_is_a_section_of_its_own() -> None:
    assert shown("Before.\n\n# A\n\nAfter.") == [
        ("", [("paragraph", "Before.")]),
        ("A", [("paragraph", "After.")]),
    ]


def test_a_path_goes_from_the_outermost_heading_to_its_own() -> None:
    text = "# A\n## B\nx\n### C\ny\n## D\nz\n# E\nw"
    assert [path for path, _ in shown(text)] == ["A / B", "A / B / C", "A / D", "E"]


def test_underlined_headings_count_as_headings() -> None:
    assert shown("Big\n===\none\n\nSmall\nwords\n---\ntwo") == [
        ("Big", [("paragraph", "one")]),
        ("Big / Small words", [("paragraph", "two")]),
    ]


def test_a_heading_with_nothing_below_it_is_kept_as_text() -> None:
    assert shown("# A\n## B\n\n## C ##\ntext\n# D") == [
        ("A / B", [("paragraph", "B")]),
        ("A / C", [("paragraph", "text")]),
        ("D", [("paragraph", "D")]),
    ]


def test_headings_inside_fences_start_no_section() -> None:
    text = "# A\n\n````sh\n# not\n```\n## neither\n````\n\n~~~\n# nor\n```\n~~~\nend"
    assert shown(text) == [
        ("A", [("code", "# not\n```\n## neither"), ("code", "# nor\n```"), ("paragraph", "end")])
    ]


def test_a_fence_that_is_never_closed_keeps_the_rest_as_code() -> None:
    assert shown("```\n# one\n\ntwo") == [("", [("code", "# one\n\ntwo")])]
    assert shown("```\n# one\n\ntwo\n\n") == [("", [("code", "# one\n\ntwo")])]


def test_a_fence_around_nothing_is_no_block() -> None:
    assert shown("a\n\n```\n```\n\n```\n\n```\n\nb") == [
        ("", [("paragraph", "a"), ("paragraph", "b")])
    ]


def test_code_keeps_its_indentation() -> None:
    assert shown("```\n\n  if x:\n    y\n```\n\n    indented\n      more\n") == [
        ("", [("code", "  if x:\n    y"), ("code", "    indented\n      more")])
    ]


def test_what_is_nested_belongs_to_its_outermost_block() -> None:
    text = "- a\n\n  # no heading\n\n  ```\n  code\n  ```\n- b\n\n> # quoted\n> text"
    assert shown(text) == [
        (
            "",
            [
                ("list", "- a\n\n  # no heading\n\n  ```\n  code\n  ```\n- b"),
                ("paragraph", "> # quoted\n> text"),
            ],
        )
    ]


def test_every_kind_of_text_is_kept() -> None:
    text = (
        "1. one\n2. two\n\n| a | b |\n|---|---|\n| c | d |\n\n<div>\nraw\n</div>\n\n"
        "[name]: https://example.com\n\n***\n\nlast"
    )
    kinds = [kind for _, blocks in shown(text) for kind, _ in blocks]
    assert kinds == ["list", "table", "paragraph", "paragraph", "paragraph"]
    assert "[name]: https://example.com" in str(shown(text))


def test_the_marks_of_a_list_are_its_items() -> None:
    text = "x\n\n- a\n  more\n  - inner\n- b"
    block = sections(text, 0)[0].blocks[1]
    assert [text[mark:].split("\n", maxsplit=1)[0] for mark in block.marks] == ["- a", "- b"]


def test_the_mark_of_a_table_is_the_end_of_its_header() -> None:
    text = "| a |\n|---|\n| b |\n| c |"
    (block,) = sections(text, 0)[0].blocks
    assert text[block.start : block.marks[0]] == "| a |\n|---|\n"


def test_equal_headings_have_different_ids_that_stay_the_same() -> None:
    text = "# A\nx\n## Steps\ny\n# A\nz\n## Steps\nw\n# A 2\nv"
    ids = [section.id for section in sections(text, 0)]
    assert ids == ["a", "a/steps", "a-2", "a/steps-2", "a-2-2"]
    assert ids == [section.id for section in sections(text, 0)]


def test_a_heading_is_named_as_it_is_shown() -> None:
    text = "# Use `kubectl` **now** with [docs](https://example.com) { #use-now }\nx"
    assert [path for path, _ in shown(text)] == ["Use kubectl now with docs"]


def test_a_heading_too_long_to_be_repeated_is_also_text() -> None:
    long = "word " * LABEL
    ((path, blocks),) = shown(f"# {long}\n\nbody")
    assert len(path) == LABEL
    assert [text for _, text in blocks] == [long.strip(), "body"]


def test_a_heading_without_words_loses_nothing() -> None:
    assert shown("# A\nx\n##\ny") == [
        ("A", [("paragraph", "x")]),
        ("A", [("paragraph", "y")]),
    ]


def test_positions_count_from_the_beginning_of_the_whole_text() -> None:
    text = "---\ntitle: x\n---\n# A\n\ntext\n"
    assert shown(text, body=17) == [("A", [("paragraph", "text")])]


def test_repeated_text_has_positions_of_its_own() -> None:
    text = "same\n\nsame\n\n- same\n\nsame"
    starts = [block.start for block in sections(text, 0)[0].blocks]
    assert starts == [0, 6, 12, 20]


def test_a_million_quotes_and_deep_lists_end() -> None:
    assert [kind for _, blocks in shown(">" * 1_000_000) for kind, _ in blocks] == ["paragraph"]
    nested = "\n".join("  " * depth + "- a" for depth in range(200))
    assert shown(nested)[0][1] == [(Kind.LIST.value, nested)]


def test_blank_text_has_no_sections() -> None:
    assert sections("\n \n\t\n***\n", 0) == ()


def test_parsing_stops_when_it_is_asked_to() -> None:
    stop = Stop()
    stop.ask()
    with pytest.raises(Stopped):
        sections("- a\n" * 3, 0, stop)
