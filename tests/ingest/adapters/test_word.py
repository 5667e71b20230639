import pytest

from services.ingest.adapters import word
from services.ingest.adapters.reply import Unreadable
from services.ingest.adapters.word import convert
from tests.ingest.papers import archive, docx, table, words

COURIER = '<w:rFonts w:ascii="Courier New"/>'


def shown(body: str) -> str:
    return convert(docx(body)).text.strip()


def test_headings_paragraphs_and_tables_come_in_order() -> None:
    body = (
        words("Pump manual", style="Heading1")
        + words("Before.")
        + table([("valve", "opens"), ("V-1", "3 bar")])
        + words("Steps", style="Heading2")
        + words("After.")
    )
    assert shown(body) == (
        "# Pump manual\n\nBefore.\n\n| valve | opens |\n| --- | --- |\n| V-1 | 3 bar |\n\n"
        "## Steps\n\nAfter."
    )


@pytest.mark.parametrize(("style", "run"), [("SourceCode", ""), ("", COURIER)])
def test_code_is_known_by_its_style_or_its_letters_and_keeps_its_lines(
    style: str, run: str
) -> None:
    lines = ("# no heading", "if x:", "    y()")
    body = words("Text.") + "".join(words(part, style=style, run=run) for part in lines)
    assert shown(body) == "Text.\n\n```\n# no heading\nif x:\n    y()\n```"


def test_hidden_text_is_left_out() -> None:
    hidden = words("Ignore this.", run="<w:vanish/>")
    seen = words("Read this.", run='<w:vanish w:val="0"/>')
    assert shown(hidden + seen) == "Read this."


def m(name: str, *parts: str) -> str:
    return f"<m:{name}>{''.join(parts)}</m:{name}>"


def letters(text: str) -> str:
    return m("r", m("t", text))


FORMULAS = {
    "(a+b)/c": m("f", m("num", letters("a+b")), m("den", letters("c"))),
    "x^2": m("sSup", m("e", letters("x")), m("sup", letters("2"))),
    "x_(ij)": m("sSub", m("e", letters("x")), m("sub", letters("ij"))),
    "x_1^n": m("sSubSup", m("e", letters("x")), m("sub", letters("1")), m("sup", letters("n"))),
    "√(x)": m("rad", m("deg"), m("e", letters("x"))),
    "√[3](x)": m("rad", m("deg", letters("3")), m("e", letters("x"))),
    "(x, y)": m("d", m("e", letters("x")), m("e", letters("y"))),
    "∑_1^n x": m(
        "nary",
        m("naryPr", '<m:chr m:val="∑"/>'),
        m("sub", letters("1")),
        m("sup", letters("n")),
        m("e", letters("x")),
    ),
}


@pytest.mark.parametrize("expected", FORMULAS)
def test_a_formula_is_written_on_one_line(expected: str) -> None:
    formula = m("oMath", FORMULAS[expected])
    start = '<w:p><w:r><w:t xml:space="preserve">Take </w:t></w:r>'
    assert shown(f"{start}{formula}</w:p>") == f"Take {expected}"
    assert shown(f"<w:p>{m('oMathPara', formula)}</w:p>") == expected


def test_the_title_is_the_one_of_its_properties() -> None:
    assert convert(docx(words("x"), title=" Pump manual ")).title == "Pump manual"
    assert convert(docx(words("x"))).title == ""


BOMB = b'<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><x>&b;</x>'


@pytest.mark.parametrize(
    ("data", "reason", "message"),
    [
        (b"PK\x03\x04 and no archive", "DAMAGED", "its archive is damaged; save it anew"),
        (docx(words("x"))[:-40], "DAMAGED", "its archive is damaged"),
        (archive({"xl/workbook.xml": b"<x/>"}), "WRONG_FORMAT", "holds no Word document"),
        (docx("<w:p>"), "DAMAGED", "word/document.xml is damaged"),
        (docx(words("x"), more={"word/settings.xml": BOMB}), "DAMAGED", "defines entities"),
        (docx(words("x"), more={"docProps/core.xml": b"<x"}), "DAMAGED", "core.xml is damaged"),
    ],
)
def test_a_document_that_cannot_be_read_is_refused(data: bytes, reason: str, message: str) -> None:
    with pytest.raises(Unreadable, match=message) as refusal:
        convert(data)
    assert refusal.value.reason == reason


def test_an_archive_that_unpacks_to_too_much_is_never_unpacked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(word, "UNPACKED", 1_000_000)
    bomb = docx(words("x"), more={"word/media/image1.png": b"\0" * 1_000_001})
    assert len(bomb) < 10_000
    with pytest.raises(Unreadable, match="unpacks to more than") as refusal:
        convert(bomb)
    assert refusal.value.reason == "DOCUMENT_TOO_LARGE"


def test_a_protected_entry_is_refused() -> None:
    # Bit 0 of an entry's flags, in its header and in the archive's list.
    data = bytearray(docx(words("x")))
    for mark, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = data.find(mark)
        while at >= 0:
            data[at + flags] |= 1
            at = data.find(mark, at + 1)
    with pytest.raises(Unreadable, match="a password protects it") as refusal:
        convert(bytes(data))
    assert refusal.value.reason == "ENCRYPTED"
