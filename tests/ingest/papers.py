"""PDF and Word documents as bytes, as small as readers take them."""

import io
import zipfile
from collections.abc import Sequence

_HEAD = b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n"
_FONTS = "/Font << /F1 5 0 R /F2 6 0 R >> /XObject << /Im1 7 0 R >>"
# Any two strings that no password leads to.
_ENCRYPTED = "/Filter /Standard /V 1 /R 2 /P -4 /O <{0}> /U <{0}>".format("ab" * 32)

_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_MATH = "http://schemas.openxmlformats.org/officeDocument/2006/math"
_RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_CORE = "http://schemas.openxmlformats.org/package/2006/metadata/core-properties"


def line(text: str, y: int, size: int = 11, *, font: str = "F1", mode: int = 0, x: int = 72) -> str:
    """One line of a page; `mode` 3 is drawn unseen, font F2 has letters of one width."""
    return f"BT /{font} {size} Tf {mode} Tr 1 0 0 1 {x} {y} Tm ({text}) Tj ET"


def image(width: int = 595, height: int = 842) -> str:
    """A grey image from the page's lower left corner on."""
    return f"q {width} 0 0 {height} 0 0 cm /Im1 Do Q"


def paragraph(sentence: str, y: int, lines: int = 6) -> list[str]:
    return [line(sentence, y - 14 * number) for number in range(lines)]


def pdf(pages: Sequence[Sequence[str]], *, title: str = "", encrypted: bool = False) -> bytes:
    """Pages of lines and images."""
    first = 8
    kids = " ".join(f"{first + 2 * number} 0 R" for number in range(len(pages)))
    objects = {
        1: _object("/Type /Catalog /Pages 2 0 R"),
        2: _object(f"/Type /Pages /Kids [{kids}] /Count {len(pages)}"),
        3: _object(f"/Title ({title})"),
        4: _object(_ENCRYPTED),
        5: _object("/Type /Font /Subtype /Type1 /BaseFont /Helvetica"),
        6: _object("/Type /Font /Subtype /Type1 /BaseFont /Courier"),
        7: _stream(
            b"\x80",
            "/Type /XObject /Subtype /Image /Width 1 /Height 1 /ColorSpace /DeviceGray"
            " /BitsPerComponent 8",
        ),
    }
    for number, page in enumerate(pages):
        at = first + 2 * number
        objects[at] = _object(
            f"/Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << {_FONTS} >>"
            f" /Contents {at + 1} 0 R"
        )
        objects[at + 1] = _stream("\n".join(page).encode("cp1252"))
    lock = " /Encrypt 4 0 R /ID [<01> <01>]" if encrypted else ""
    return _file(objects, f"/Root 1 0 R /Info 3 0 R{lock}")


def _object(entries: str) -> bytes:
    return f"<< {entries} >>".encode()


def _stream(data: bytes, entries: str = "") -> bytes:
    return _object(f"{entries} /Length {len(data)}") + b"\nstream\n" + data + b"\nendstream"


def _file(objects: dict[int, bytes], trailer: str) -> bytes:
    out, places = bytearray(_HEAD), []
    for number, body in sorted(objects.items()):
        places.append(len(out))
        out += f"{number} 0 obj\n".encode() + body + b"\nendobj\n"
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    end = f"xref\n0 {len(places) + 1}\n0000000000 65535 f \n{table}"
    tail = f"trailer\n<< /Size {len(places) + 1} {trailer} >>\nstartxref\n{len(out)}\n%%EOF\n"
    return bytes(out) + (end + tail).encode()


def docx(body: str, *, title: str = "", more: dict[str, bytes] | None = None) -> bytes:
    """A Word document whose body is WordprocessingML with the prefixes w and m."""
    parts = {
        "[Content_Types].xml": (
            '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
            '<Default Extension="rels"'
            ' ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
            '<Default Extension="xml" ContentType="application/xml"/></Types>'
        ),
        "_rels/.rels": (
            f'<Relationships xmlns="{_RELATIONS}"><Relationship Id="r1"'
            f' Type="{_OFFICE}/officeDocument" Target="word/document.xml"/></Relationships>'
        ),
        "word/document.xml": (
            f'<w:document xmlns:w="{_WORD}" xmlns:m="{_MATH}"><w:body>{body}</w:body></w:document>'
        ),
        "word/styles.xml": f'<w:styles xmlns:w="{_WORD}">{_styles()}</w:styles>',
        "docProps/core.xml": (
            f'<cp:coreProperties xmlns:cp="{_CORE}"'
            f' xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>{title}</dc:title>'
            "</cp:coreProperties>"
        ),
    }
    return archive({name: part.encode() for name, part in parts.items()} | (more or {}))


def archive(parts: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, part in parts.items():
            packed.writestr(name, part)
    return buffer.getvalue()


def _styles() -> str:
    names = {"Heading1": "heading 1", "Heading2": "heading 2", "SourceCode": "Source Code"}
    return "".join(
        f'<w:style w:type="paragraph" w:styleId="{key}"><w:name w:val="{name}"/></w:style>'
        for key, name in names.items()
    )


def words(text: str, *, style: str = "", run: str = "") -> str:
    """A paragraph; `run` holds properties of its one run."""
    kind = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f'<w:p>{kind}<w:r><w:rPr>{run}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r></w:p>'


def table(rows: Sequence[Sequence[str]]) -> str:
    cells = ["".join(f"<w:tc>{words(cell)}</w:tc>" for cell in row) for row in rows]
    return "<w:tbl>" + "".join(f"<w:tr>{row}</w:tr>" for row in cells) + "</w:tbl>"
