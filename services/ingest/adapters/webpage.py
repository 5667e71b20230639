"""HTML to Markdown: what a reader of the page sees of it, without what leads to other pages."""

import codecs
import re
from collections.abc import Mapping

import html_to_markdown
from html_to_markdown import ConversionOptions

from services.ingest.adapters.reply import Converted, Unreadable, answer

# Characters in which a page says its title and its encoding.
HEAD = 65_536
# Characters from which the parser that needs little memory is taken; it pads tables.
LARGE = 4_000_000

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_DECLARED = re.compile(
    rb"<meta\s[^>]*?charset\s*=\s*[\"']?\s*([\w:.-]+)|<\?xml\s[^>]*?encoding\s*=\s*[\"']([\w:.-]+)",
    re.IGNORECASE,
)
# Browsers read what calls itself Latin-1 or ASCII as its superset of Windows; a page whose
# declaration could be read byte by byte is not in UTF-16.
_READ_AS = {
    "iso8859-1": "cp1252",
    "ascii": "cp1252",
    "utf-16": "utf-8",
    "utf-16-le": "utf-8",
    "utf-16-be": "utf-8",
}


def convert(data: bytes) -> Converted:
    """The page in the bytes. Raises Unreadable."""
    page = _decoded(data)
    head = html_to_markdown.convert(page[:HEAD]).metadata.document
    options = ConversionOptions(
        extract_metadata=False,
        compact_tables=True,
        tier_strategy="tier1" if len(page) >= LARGE else "tier2",
        inline_data_media="alt_text_only",
        capture_svg=False,
    )
    result = html_to_markdown.convert(page, options)
    if result.warnings:
        raise Unreadable("TOO_DEEP", "elements are nested more than 1,024 deep")
    return Converted(result.content or "", head.title or "", _said(head.meta_tags))


def _said(tags: Mapping[str, str]) -> dict[str, str]:
    return {str(name): str(content) for name, content in tags.items()}


def _decoded(data: bytes) -> str:
    encoding, start = _encoding(data)
    try:
        text = data[start:].decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, start + error.start) + 1
        raise Unreadable(
            "NOT_UTF8" if encoding == "utf-8" else "WRONG_ENCODING",
            f"line {line}: not {encoding} at byte {start + error.start}; save it as UTF-8, or"
            ' declare its encoding, such as <meta charset="windows-1252">',
        ) from error
    if "\0" in text:
        raise Unreadable("BINARY", "a zero character, so this is no text")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _encoding(data: bytes) -> tuple[str, int]:
    """The encoding, and where the text begins."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return encoding, len(mark)
    declared = _DECLARED.search(data, 0, HEAD)
    if declared is None:
        return "utf-8", 0
    label = (declared[1] or declared[2]).decode("ascii", "replace")
    try:
        known = codecs.lookup(label).name
    except LookupError as error:
        raise Unreadable(
            "WRONG_ENCODING", f"its declared encoding {label!r} is unknown; save it as UTF-8"
        ) from error
    return _READ_AS.get(known, known), 0


if __name__ == "__main__":
    answer(convert)
