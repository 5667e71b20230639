from services.ingest.plain import sections


def test_blank_lines_part_paragraphs_and_nothing_else_means_anything() -> None:
    text = "\n  # one\nstill one\n \n\t\n- two\n\n\n```\n"
    (section,) = sections(text, 0)
    assert section.path == ()
    assert [text[b.start : b.end] for b in section.blocks] == ["# one\nstill one", "- two", "```"]


def test_blank_text_has_no_sections() -> None:
    assert sections(" \n\n\t", 0) == ()


def test_what_stands_before_the_body_is_left_out() -> None:
    (section,) = sections("head\n\nbody", 5)
    assert [(b.start, b.end) for b in section.blocks] == [(6, 10)]
