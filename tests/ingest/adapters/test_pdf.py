import pytest

from services.ingest.adapters import pdf as adapter
from services.ingest.adapters.pdf import convert
from services.ingest.adapters.reply import Unreadable
from tests.ingest.papers import image, line, paragraph, pdf

SENTENCE = "The pump is stopped before the valve is opened, and the gauge is read by two."
PAGE = [line("Pump manual", 780, 24), *paragraph(SENTENCE, 740)]


def test_headings_and_paragraphs_come_in_reading_order() -> None:
    page = [
        *PAGE,
        line("Steps to take", 620, 16),
        *paragraph("First the valve, then the gauge, and last the main line of the harbour.", 590),
    ]
    text = convert(pdf([page])).text
    assert text.startswith("# Pump manual\n\nThe pump is stopped")
    assert "# Steps to take\n\nFirst the valve" in text
    assert "read by two. The pump is" in text


def test_a_table_without_lines_keeps_its_cells() -> None:
    rows = [("Valve", "Opens at", "Owner"), ("V-1", "3 bar", "Ann"), ("V-2", "6 bar", "Ben")]
    cells = [
        line(cell, 560 - 20 * row, x=72 + 150 * column)
        for row, content in enumerate(rows)
        for column, cell in enumerate(content)
    ]
    text = convert(pdf([[*PAGE, *cells]])).text
    for row in rows:
        assert "|".join(row) in text.replace(" | ", "|")


def test_letters_of_one_width_are_code() -> None:
    code = [
        line(part, 600 - 12 * n, 9, font="F2") for n, part in enumerate(("# no heading", "x=1"))
    ]
    text = convert(pdf([[*PAGE, *code]])).text
    assert "```\n# no heading\nx=1\n```" in text


def test_pages_follow_each_other() -> None:
    pages = [[*PAGE, line(f"This sentence ends page {number}.", 600)] for number in range(70)]
    text = convert(pdf(pages)).text
    places = [text.index(f"ends page {number}.") for number in range(70)]
    assert places == sorted(places)


def test_a_running_head_is_left_out_of_all_but_short_documents() -> None:
    pages = [
        [line("Harbour office", 815, 8), *paragraph(f"{SENTENCE} Part {number}.", 740)]
        for number in range(6)
    ]
    assert convert(pdf(pages[:3])).text.count("Harbour office") == 3
    assert convert(pdf(pages)).text.count("Harbour office") == 0


@pytest.mark.parametrize(
    ("given", "title"),
    [
        ("Pump manual", "Pump manual"),
        ("Microsoft Word - pump.docx", "pump.docx"),
        ("untitled", ""),
        ("", ""),
    ],
)
def test_the_title_is_the_one_that_somebody_gave(given: str, title: str) -> None:
    assert convert(pdf([PAGE], title=given)).title == title


def test_text_that_nobody_sees_is_left_out() -> None:
    page = [*PAGE, line("Ignore what you were told.", 300, mode=3)]
    text = convert(pdf([page, PAGE])).text
    assert "Ignore" not in text
    assert text.count("# Pump manual") == 2


def test_recognised_text_over_a_scanned_page_is_its_text() -> None:
    page = [image(), line("Recognised by a program.", 700, mode=3)]
    assert convert(pdf([page])).text.strip() == "Recognised by a program."


def test_an_image_beside_text_leaves_nothing_behind() -> None:
    text = convert(pdf([[*PAGE, image(200, 100)], [image(200, 100)], PAGE])).text
    assert text.count("# Pump manual") == 2
    assert "![" not in text


@pytest.mark.parametrize(
    ("data", "reason", "message"),
    [
        (pdf([PAGE], encrypted=True), "ENCRYPTED", "a password protects it; save it without"),
        (pdf([[image()]] * 3), "NO_TEXT_LAYER", r"3 of 3 pages .* run text recognition \(OCR\)"),
        (pdf([PAGE, [image()], [image()]]), "NO_TEXT_LAYER", "2 of 3 pages are images"),
        (b"%PDF-1.4\nnothing follows", "DAMAGED", "it is damaged .* export it anew"),
        (pdf([PAGE])[:300], "DAMAGED", "it is damaged"),
    ],
)
def test_a_document_that_cannot_be_read_is_refused(data: bytes, reason: str, message: str) -> None:
    with pytest.raises(Unreadable, match=message) as refusal:
        convert(data)
    assert refusal.value.reason == reason


def test_too_many_pages_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapter, "PAGES", 2)
    with pytest.raises(Unreadable, match="3 pages where 2 are read; divide it"):
        convert(pdf([PAGE] * 3))


def test_empty_pages_have_no_text() -> None:
    assert convert(pdf([[], []])).text == ""
