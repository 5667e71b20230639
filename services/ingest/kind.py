"""What bytes are by their first ones, whatever the document is named."""

from chassis.errors import InvalidInput
from services.ingest.document import Format

# PDF readers look for the mark so far into a file.
_PDF_MARK_WITHIN = 1_024
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ZIP = b"PK\x03\x04"
_PDF = b"%PDF-"
_NAMES = {Format.MARKDOWN: "Markdown", Format.TEXT: "text", Format.HTML: "HTML"}
# The name of the stream in which Office keeps what it encrypted.
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")


def check(data: bytes, name: str, form: Format) -> None:
    """Refuse bytes that are no document of that format, as far as their first ones tell.

    Raises InvalidInput: WRONG_FORMAT, ENCRYPTED or EMPTY, with how to mend it.
    """
    if not data:
        raise InvalidInput(f"{name}: the document is empty", field="data", reason="EMPTY")
    if data.startswith(_OLE):
        raise _old_office(data, name)
    if form is Format.PDF:
        if _PDF not in data[:_PDF_MARK_WITHIN]:
            raise _wrong(name, f"this is no PDF{_but(data)}")
    elif form is Format.DOCX:
        if not data.startswith(_ZIP):
            raise _wrong(name, f"this is no Word document{_but(data)}")
    elif data.startswith((_PDF, _ZIP)):
        raise _wrong(name, f"this is no {_NAMES[form]}{_but(data)}")


def _old_office(data: bytes, name: str) -> InvalidInput:
    if _ENCRYPTED in data:
        return InvalidInput(
            f"{name}: a password protects it; save it without one", field="data", reason="ENCRYPTED"
        )
    return _wrong(name, "this is an Office document of the old kind; save it as .docx")


def _but(data: bytes) -> str:
    if _PDF in data[:_PDF_MARK_WITHIN]:
        return " but a PDF; name it .pdf"
    return " but an archive, such as a Word document; name it .docx" if data[:4] == _ZIP else ""


def _wrong(name: str, complaint: str) -> InvalidInput:
    return InvalidInput(f"{name}: {complaint}", field="data", reason="WRONG_FORMAT")
