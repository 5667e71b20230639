"""PDF to Markdown: the text layer that a reader of the pages sees, with the layout's structure."""

import io
import re
from collections.abc import Iterator, Sequence

from liteparse import LiteParse
from pypdfium2 import PdfDocument, PdfiumError, PdfObject, PdfPage
from pypdfium2 import raw as pdfium

from services.ingest.adapters.reply import Converted, Unreadable, answer

PAGES = 2_000
# Pages that are laid out at once; more only take memory.
BATCH = 32
# Pages from which what stands on each at the same place is taken for a running head.
RUNNING = 4
# Part of a page that an image covers if the page is a scan.
SCANNED = 0.5
# Part of the characters that may be unknown before the text layer is taken for unreadable.
UNKNOWN = 0.2

_UNSEEN = {pdfium.FPDF_TEXTRENDERMODE_INVISIBLE, pdfium.FPDF_TEXTRENDERMODE_CLIP}
_KINDS = [pdfium.FPDF_PAGEOBJ_TEXT, pdfium.FPDF_PAGEOBJ_IMAGE]
_UNKNOWN = re.compile("[\ufffd\ue000-\uf8ff]")
# What programs write where nobody gave a title.
_NO_TITLES = {"", "untitled", "(anonymous)"}
_PROGRAM = re.compile(r"^Microsoft (?:Word|PowerPoint) - ")


def convert(data: bytes) -> Converted:
    """The document in the bytes. Raises Unreadable."""
    document = _opened(data)
    if len(document) > PAGES:
        raise Unreadable(
            "DOCUMENT_TOO_LARGE", f"{len(document):,} pages where {PAGES:,} are read; divide it"
        )
    looks = [_Look(page) for page in _pages(document)]
    _check_text(looks)
    title = _title(document)
    if any(look.cleaned for look in looks):
        data = _saved(document)
    text = "\n\n".join(_laid_out(data, [look.text for look in looks]))
    if len(_UNKNOWN.findall(text)) > UNKNOWN * len(text):
        raise Unreadable(
            "NO_TEXT_LAYER",
            "its fonts do not say which letters they draw; run text recognition (OCR) first",
        )
    return Converted(text, title)


def _opened(data: bytes) -> PdfDocument:
    try:
        return PdfDocument(data)
    except PdfiumError as error:
        if error.err_code == pdfium.FPDF_ERR_PASSWORD:
            raise Unreadable("ENCRYPTED", "a password protects it; save it without one") from error
        if error.err_code == pdfium.FPDF_ERR_SECURITY:
            raise Unreadable(
                "ENCRYPTED", "it is encrypted in a way that is not read; save it without encryption"
            ) from error
        raise Unreadable(
            "DAMAGED", "it is damaged and no page of it can be read; export it anew"
        ) from error


def _pages(document: PdfDocument) -> Iterator[PdfPage]:
    for number in range(len(document)):
        try:
            page = document[number]
        except PdfiumError as error:
            raise Unreadable(
                "DAMAGED", f"it is damaged on page {number + 1}; export it anew"
            ) from error
        yield page
        page.close()


class _Look:
    """What can be seen on a page. Text that no reader of the page sees is taken out of it."""

    def __init__(self, page: PdfPage) -> None:
        objects = list(page.get_objects(_KINDS))
        texts = [one for one in objects if one.type == pdfium.FPDF_PAGEOBJ_TEXT]
        unseen = [one for one in texts if _mode(one) in _UNSEEN]
        seen = len(texts) - len(unseen)
        self.image = len(objects) > len(texts)
        # Text recognition lays its text unseen over the image of a page.
        recognised = len(unseen) > seen and _covered(page, objects)
        self.text = seen > 0 or recognised
        self.cleaned = bool(unseen) and not recognised
        if self.cleaned:
            _remove(page, unseen)


def _mode(text: PdfObject) -> int:
    return int(pdfium.FPDFTextObj_GetTextRenderMode(text.raw))


def _covered(page: PdfPage, objects: Sequence[PdfObject]) -> bool:
    width, height = page.get_size()
    images = (one for one in objects if one.type == pdfium.FPDF_PAGEOBJ_IMAGE)
    return any(_area(image) >= SCANNED * width * height for image in images)


def _area(image: PdfObject) -> float:
    left, bottom, right, top = image.get_bounds()
    return float((right - left) * (top - bottom))


def _remove(page: PdfPage, texts: Sequence[PdfObject]) -> None:
    for text in texts:
        if text.container:
            pdfium.FPDFFormObj_RemoveObject(text.container.raw, text.raw)
        else:
            page.remove_obj(text)
    page.gen_content()


def _check_text(looks: Sequence[_Look]) -> None:
    images = sum(look.image and not look.text for look in looks)
    if images and images * 2 >= len(looks):
        raise Unreadable(
            "NO_TEXT_LAYER",
            f"{images} of {len(looks)} pages are images without a text layer;"
            " run text recognition (OCR) first",
        )


def _title(document: PdfDocument) -> str:
    given = _PROGRAM.sub("", document.get_metadata_value("Title")).strip()
    return "" if given.casefold() in _NO_TITLES else given


def _saved(document: PdfDocument) -> bytes:
    buffer = io.BytesIO()
    document.save(buffer)
    return buffer.getvalue()


def _laid_out(data: bytes, texts: Sequence[bool]) -> Iterator[str]:
    """Markdown of the pages that have text; `texts` says which have, of all of them."""
    for first in range(1, len(texts) + 1, BATCH):
        last = min(first + BATCH - 1, len(texts))
        layout = LiteParse(
            ocr_enabled=False,
            output_format="markdown",
            image_mode="off",
            keep_headers_footers=len(texts) < RUNNING,
            target_pages=f"{first}-{last}",
            quiet=True,
            num_workers=1,
        )
        for page in layout.parse(data).pages:
            if texts[page.page_num - 1]:
                yield page.markdown


if __name__ == "__main__":
    answer(convert)
