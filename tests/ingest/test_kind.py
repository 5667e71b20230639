import pytest

from chassis.errors import InvalidInput
from services.ingest.document import Format
from services.ingest.kind import check
from tests.ingest.papers import docx, pdf, words

OLD = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 512
PROTECTED = OLD + "EncryptedPackage".encode("utf-16-le")
PDF, WORD = pdf([[]]), docx(words("x"))


@pytest.mark.parametrize(
    ("data", "form"),
    [
        (PDF, Format.PDF),
        (b"a mail's head\n" + PDF, Format.PDF),
        (WORD, Format.DOCX),
        (b"<html>", Format.HTML),
        (b"# A", Format.MARKDOWN),
        (b"%PDF is what a PDF begins with", Format.TEXT),
    ],
)
def test_bytes_that_begin_as_their_format_does_pass(data: bytes, form: Format) -> None:
    check(data, "x", form)
    assert data


@pytest.mark.parametrize(
    ("data", "form", "reason", "message"),
    [
        (b"", Format.PDF, "EMPTY", "the document is empty"),
        (b"<html>", Format.PDF, "WRONG_FORMAT", "this is no PDF$"),
        (
            WORD,
            Format.PDF,
            "WRONG_FORMAT",
            "no PDF but an archive, such as a Word .* name it .docx",
        ),
        (PDF, Format.DOCX, "WRONG_FORMAT", "no Word document but a PDF; name it .pdf"),
        (b"text", Format.DOCX, "WRONG_FORMAT", "this is no Word document$"),
        (PDF, Format.MARKDOWN, "WRONG_FORMAT", "this is no Markdown but a PDF; name it .pdf"),
        (PDF, Format.HTML, "WRONG_FORMAT", "this is no HTML but a PDF"),
        (WORD, Format.TEXT, "WRONG_FORMAT", "this is no text but an archive"),
        (OLD, Format.DOCX, "WRONG_FORMAT", "of the old kind; save it as .docx"),
        (OLD, Format.MARKDOWN, "WRONG_FORMAT", "of the old kind"),
        (PROTECTED, Format.DOCX, "ENCRYPTED", "a password protects it; save it without one"),
    ],
)
def test_bytes_of_another_format_are_refused_with_how_to_mend_it(
    data: bytes, form: Format, reason: str, message: str
) -> None:
    with pytest.raises(InvalidInput, match=f"^x: .*{message}") as refusal:
        check(data, "x", form)
    assert refusal.value.reason == reason
