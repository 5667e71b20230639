"""DOCX to Markdown, by way of HTML: headings, lists, tables, code, notes, formulas."""

import io
import zipfile
from collections.abc import Iterator
from xml.etree import ElementTree as ET
from xml.etree.ElementTree import Element

import html_to_markdown
import mammoth
import mammoth.documents
import mammoth.transforms
from html_to_markdown import ConversionOptions

from services.ingest.adapters import formula
from services.ingest.adapters.reply import Converted, Unreadable, answer

# Entries of the archive, and bytes of all of them unpacked.
ENTRIES = 5_000
UNPACKED = 128 * 1024 * 1024

_WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_TITLE = "{http://purl.org/dc/elements/1.1/}title"
_SHOWN = ("word/document", "word/footnotes", "word/endnotes")
_CODE = "Sluice Code"
_CODE_STYLES = {"code", "source code", "html preformatted", "macro text", "preformatted text"}
_FIXED_PITCH = ("courier", "consolas", "menlo", "monaco", "mono", "lucida console", "source code")
_STYLES = f"""
p[style-name='{_CODE}'] => pre:separator('\\n')
p[style-name='Title'] => h1:fresh
p[style-name='Subtitle'] => p:fresh
"""


def convert(data: bytes) -> Converted:
    """The document in the bytes. Raises Unreadable."""
    parts = _unpacked(data)
    shown = [name for name in parts if name.startswith(_SHOWN)]
    if not shown:
        raise Unreadable("WRONG_FORMAT", "it is an archive that holds no Word document")
    title = _title(parts.get("docProps/core.xml", b""))
    parts.update({name: _prepared(parts[name], name) for name in shown})
    result = mammoth.convert_to_html(
        _packed(parts),
        style_map=_STYLES,
        transform_document=mammoth.transforms.paragraph(_styled),
        convert_image=mammoth.images.img_element(lambda _: {"src": ""}),
    )
    options = ConversionOptions(extract_metadata=False, compact_tables=True, tier_strategy="tier2")
    markdown = html_to_markdown.convert(result.value, options)
    if markdown.warnings:
        raise Unreadable("TOO_DEEP", "tables or lists are nested more than 1,024 deep")
    return Converted(markdown.content or "", title)


def _unpacked(data: bytes) -> dict[str, bytes]:
    """The archive's XML parts and relations. Raises Unreadable."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            _check_size(archive)
            parts = {
                entry.filename: archive.read(entry)
                for entry in archive.infolist()
                if entry.filename.endswith((".xml", ".rels"))
            }
    except (zipfile.BadZipFile, EOFError, NotImplementedError, OSError) as error:
        raise Unreadable("DAMAGED", "its archive is damaged; save it anew") from error
    except RuntimeError as error:
        raise Unreadable("ENCRYPTED", "a password protects it; save it without one") from error
    for name, part in parts.items():
        # No program that writes documents declares a type; whoever does means to define entities.
        if b"<!DOCTYPE" in part or b"<!ENTITY" in part:
            raise Unreadable("DAMAGED", f"{name} defines entities, which no document needs")
    return parts


def _check_size(archive: zipfile.ZipFile) -> None:
    # An entry is never read beyond the size that its header gives.
    entries = archive.infolist()
    if len(entries) > ENTRIES or sum(entry.file_size for entry in entries) > UNPACKED:
        raise Unreadable(
            "DOCUMENT_TOO_LARGE",
            f"unpacks to more than {ENTRIES:,} parts or {UNPACKED >> 20:,} MiB; divide it",
        )


def _parsed(part: bytes, name: str) -> Element:
    try:
        return ET.fromstring(part)  # noqa: S314 - nothing is left that could expand
    except ET.ParseError as error:
        raise Unreadable("DAMAGED", f"{name} is damaged; save it anew") from error


def _title(core: bytes) -> str:
    found = _parsed(core, "docProps/core.xml").findtext(_TITLE) if core else ""
    return (found or "").strip()


def _prepared(part: bytes, name: str) -> bytes:
    """The part without hidden text, and with formulas written out."""
    root = _parsed(part, name)
    for parent in list(root.iter()):
        for child in list(parent):
            if _hidden(child):
                parent.remove(child)
            elif child.tag == formula.FORMULA:
                parent.insert(list(parent).index(child), _run(formula.linear(child)))
                parent.remove(child)
    _lift_formula_paragraphs(root)
    return ET.tostring(root)


def _hidden(node: Element) -> bool:
    mark = node.find(f"{_WORD}rPr/{_WORD}vanish") if node.tag == f"{_WORD}r" else None
    return mark is not None and mark.get(f"{_WORD}val", "1") not in {"0", "false", "off"}


def _run(text: str) -> Element:
    run = Element(f"{_WORD}r")
    ET.SubElement(run, f"{_WORD}t", {"{http://www.w3.org/XML/1998/namespace}space": "preserve"})
    run[0].text = text
    return run


def _lift_formula_paragraphs(root: Element) -> None:
    """A formula on a line of its own stands in an element that the converter passes over."""
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag == f"{formula.MATH}oMathPara":
                at = list(parent).index(child)
                parent.remove(child)
                for run in reversed(child.findall(f"{_WORD}r")):
                    parent.insert(at, run)


def _packed(parts: dict[str, bytes]) -> io.BytesIO:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    buffer.seek(0)
    return buffer


def _styled(paragraph: mammoth.documents.Paragraph) -> mammoth.documents.Paragraph:
    style = (paragraph.style_name or "").casefold()
    if style in _CODE_STYLES or _fixed_pitch(paragraph):
        return paragraph.copy(style_name=_CODE, style_id=None)
    return paragraph


def _fixed_pitch(paragraph: mammoth.documents.Paragraph) -> bool:
    fonts = list(_fonts(paragraph))
    return bool(fonts) and all(
        any(name in font.casefold() for name in _FIXED_PITCH) for font in fonts
    )


def _fonts(paragraph: mammoth.documents.Paragraph) -> Iterator[str]:
    runs = mammoth.transforms.get_descendants_of_type(paragraph, mammoth.documents.Run)
    for run in runs:
        if any(getattr(child, "value", "").strip() for child in run.children):
            yield run.font or ""


if __name__ == "__main__":
    answer(convert)
