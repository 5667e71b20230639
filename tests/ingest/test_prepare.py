import hashlib
from collections.abc import Callable
from dataclasses import replace

import pytest

from chassis.errors import InvalidInput
from chassis.identity import AccessLevel
from corpus import tokens
from corpus.points import State, point_id
from corpus.profile import profile
from services.ingest.chunk import Chunking
from services.ingest.document import Format
from services.ingest.metadata import Given
from services.ingest.prepare import Header, Preparation, Prepared, check
from tests.ingest.papers import docx, line, paragraph, pdf, table, words

PROFILE = profile("multilingual-e5-small")
CHUNKING = Chunking(PROFILE, tokens.counter(PROFILE), budget=256, overlap=1)
PREPARATION = Preparation(CHUNKING, AccessLevel.TEAM)
HEADER = Header("guides/disk.md", "guides")
TEXT = b"# Disk\n\nFree it.\n\n# Disk\n\nFree it.\n"


def prepared(data: bytes = TEXT, header: Header = HEADER, tenant: str = "acme") -> Prepared:
    return PREPARATION.prepare(tenant, header, data)


def ids(found: Prepared) -> list[str]:
    return [point_id(passage, str(passage.chunk)) for passage in found.passages]


def test_passages_carry_what_identifies_and_what_guards_them() -> None:
    data = (
        b"---\naccess: restricted\ngroups: [sre]\npublication_state: draft\n---\n# Disk\n\nText.\n"
    )
    (passage,) = prepared(data).passages
    assert (passage.tenant, passage.document_id, passage.source) == (
        "acme",
        "guides/disk.md",
        "guides",
    )
    assert (passage.access, passage.groups, passage.state) == (
        AccessLevel.RESTRICTED,
        ("sre",),
        State.DRAFT,
    )
    assert (passage.title, passage.heading_path) == ("Disk", ("Disk",))
    assert passage.content_hash == hashlib.sha256(data).hexdigest()
    assert (passage.chunk, passage.chunks) == (0, 1)


def test_a_document_that_says_nothing_gets_the_defaults() -> None:
    known = prepared(b"Text only.").document.metadata
    assert (known.title, known.state, known.access, known.groups) == (
        "guides/disk.md",
        State.PUBLISHED,
        AccessLevel.TEAM,
        (),
    )


def test_what_the_caller_says_wins_field_by_field() -> None:
    data = b"---\ntitle: Theirs\nversion: 3\naccess: public\ngroups: [sre]\n---\n# Heading\n\ntext"
    header = replace(HEADER, given=Given(access=AccessLevel.RESTRICTED, groups=("dba",)))
    known = prepared(data, header).document.metadata
    assert (known.title, known.version) == ("Theirs", "3")
    assert (known.access, known.groups) == (AccessLevel.RESTRICTED, ("dba",))


@pytest.mark.parametrize("header", list(AccessLevel))
@pytest.mark.parametrize("own", list(AccessLevel))
def test_of_two_access_levels_the_narrower_holds(header: AccessLevel, own: AccessLevel) -> None:
    data = f"---\naccess: {own.label}\n---\ntext".encode()
    known = prepared(data, replace(HEADER, given=Given(access=header))).document.metadata
    assert known.access is max(header, own)


@pytest.mark.parametrize("header", list(State))
@pytest.mark.parametrize("own", list(State))
def test_a_draft_on_either_side_is_a_draft(header: State, own: State) -> None:
    data = f"---\npublication_state: {own}\n---\ntext".encode()
    known = prepared(data, replace(HEADER, given=Given(state=header))).document.metadata
    assert (known.state is State.DRAFT) == (State.DRAFT in {header, own})


def test_a_caller_may_show_what_says_nothing_to_more_than_the_default() -> None:
    public = replace(HEADER, given=Given(access=AccessLevel.PUBLIC))
    assert prepared(header=public).document.metadata.access is AccessLevel.PUBLIC


def test_equal_headings_and_texts_have_ids_of_their_own() -> None:
    found = prepared()
    assert len(set(ids(found))) == len(found.passages) == 2


def test_the_same_input_gives_the_same_ids_everywhere() -> None:
    assert ids(prepared()) == ids(prepared())
    assert prepared().revision == prepared().revision


@pytest.mark.parametrize(
    "change",
    [
        lambda: prepared(TEXT + b"\nMore."),
        lambda: prepared(b"---\nversion: 2\n---\n" + TEXT),
        lambda: prepared(header=replace(HEADER, given=Given(state=State.DRAFT))),
        lambda: prepared(header=replace(HEADER, source="other")),
        lambda: prepared(header=Header("guides/other.md", "guides")),
        lambda: prepared(tenant="other"),
        lambda: Preparation(replace(CHUNKING, budget=200), AccessLevel.TEAM).prepare(
            "acme", HEADER, TEXT
        ),
    ],
)
def test_whatever_differs_gives_other_ids(change: Callable[[], Prepared]) -> None:
    assert set(ids(change())).isdisjoint(ids(prepared()))


def test_another_default_level_is_another_revision() -> None:
    public = Preparation(CHUNKING, AccessLevel.PUBLIC).prepare("acme", HEADER, TEXT)
    assert public.revision != prepared().revision


@pytest.mark.parametrize(
    ("name", "told", "expected"),
    [
        ("a.md", None, Format.MARKDOWN),
        ("a.b/C.MARKDOWN", None, Format.MARKDOWN),
        ("a.txt", None, Format.TEXT),
        ("a.txt", Format.MARKDOWN, Format.MARKDOWN),
        ("no-extension", Format.TEXT, Format.TEXT),
        ("a.HTML", None, Format.HTML),
        ("a.htm", None, Format.HTML),
        ("a.pdf", None, Format.PDF),
        ("a.docx", None, Format.DOCX),
        ("a.md", Format.PDF, Format.PDF),
    ],
)
def test_the_format_is_told_or_seen_from_the_extension(
    name: str, told: Format | None, expected: Format
) -> None:
    assert check(Header(name, "s", told)) is expected


@pytest.mark.parametrize(
    "header",
    [
        Header("a", "s"),
        Header("a.json", "s"),
        Header("a.doc", "s"),
    ],
)
def test_other_formats_are_refused_with_those_that_are_read(header: Header) -> None:
    with pytest.raises(InvalidInput, match=r"is not read; supported: Markdown \(.md") as refusal:
        check(header)
    assert refusal.value.reason == "UNSUPPORTED_FORMAT"


@pytest.mark.parametrize(
    ("header", "field"),
    [
        (Header("", "s"), "header.document_id"),
        (Header("x" * 510 + ".md", "s"), "header.document_id"),
        (Header("a\nb.md", "s"), "header.document_id"),
        (Header("a\u202egnp.md", "s"), "header.document_id"),
        (Header("a\u200bb.md", "s"), "header.document_id"),
        (Header(" a.md", "s"), "header.document_id"),
        (Header("a.md", ""), "header.source"),
        (Header("a.md", "x" * 129), "header.source"),
    ],
)
def test_names_outside_their_limits_are_refused_by_field(header: Header, field: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        check(header)
    assert refusal.value.field == field


@pytest.mark.parametrize(
    "name",
    [
        "\u65e5\u672c\u3000\u8a9e",
        "\u0645\u06cc\u200c\u062e\u0648",
        "10\u202fAM",
        "a\u00a0b",
        "\U0001f469\u200d\U0001f4bb",
    ],
)
def test_names_and_titles_may_be_of_any_script(name: str) -> None:
    found = prepared(f"---\ntitle: {name}\n---\ntext".encode(), header=Header(f"{name}.md", name))
    assert (found.document.id, found.document.metadata.title) == (f"{name}.md", name)


@pytest.mark.parametrize("data", [b"---\ntitle: x\n---\n", b" \n\n", b"***", b"```\n```"])
def test_a_document_without_text_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidInput, match=r"guides/disk\.md: there is no text") as refusal:
        prepared(data)
    assert refusal.value.reason == "EMPTY"


def test_windows_line_ends_and_a_mark_hide_neither_front_matter_nor_headings() -> None:
    found = prepared(b"\xef\xbb\xbf---\r\ntitle: T\r\n---\r\n# H\r\n\r\ntext\r\n")
    assert found.document.metadata.title == "T"
    assert [section.path for section in found.document.sections] == [("H",)]


def test_plain_text_is_read_without_markdown() -> None:
    found = prepared(b"# no heading", Header("a.txt", "s"))
    assert found.passages[0].heading_path == ()
    assert found.passages[0].text == "# no heading"


SENTENCE = "The pump is stopped before the valve is opened, and the gauge is read by two."
PAGES = [
    [line("Pump manual", 780, 24), *paragraph(SENTENCE, 740, 40)],
    [*paragraph(SENTENCE, 740, 40)],
]
HTML = b"""<html><head><title>Pump manual</title>
<meta name="access" content="restricted"><meta name="groups" content="sre, dba">
<meta name="publication_state" content="draft"><meta name="generator" content="x"></head>
<body><h1>Pump manual</h1><p>Stop it.</p><table><tr><th>valve</th></tr><tr><td>V-1</td></tr></table>
</body></html>"""
WORD = docx(
    words("Pump manual", style="Heading1") + words(SENTENCE * 30) + table([("valve",), ("V-1",)]),
    title="Pump manual",
)


@pytest.mark.parametrize(
    ("name", "data"),
    [("a.html", HTML), ("a.pdf", pdf(PAGES, title="Pump manual")), ("a.docx", WORD)],
)
def test_a_converted_document_is_chunked_like_any_other(name: str, data: bytes) -> None:
    found = prepared(data, Header(name, "s"))
    assert found.document.metadata.title == "Pump manual"
    assert found.document.content_hash == hashlib.sha256(data).hexdigest()
    assert {section.path for section in found.document.sections} == {("Pump manual",)}
    for chunk in found.chunks:
        assert chunk.tokens <= CHUNKING.budget
        for block in chunk.blocks:
            assert found.document.text[block.start : block.end] == block.text


def test_a_page_says_in_its_head_who_may_read_it() -> None:
    known = prepared(HTML, Header("a.html", "s")).document.metadata
    assert (known.access, known.groups, known.state) == (
        AccessLevel.RESTRICTED,
        ("dba", "sre"),
        State.DRAFT,
    )


@pytest.mark.parametrize(
    ("page", "complaint"),
    [
        (b'<meta name="access" content="everyone"><p>x</p>', "a.html: access: 'everyone' is not"),
        (b'<meta name="access-level" content="team"><p>x</p>', "unknown; 'access' is how it is"),
        (b"<p>---<br>access: restricted<br>---</p><p>x</p>", "'access' belongs between lines"),
    ],
)
def test_who_may_read_a_page_is_never_passed_over(page: bytes, complaint: str) -> None:
    with pytest.raises(InvalidInput, match=complaint) as refusal:
        prepared(page, Header("a.html", "s"))
    assert refusal.value.reason == "FRONT_MATTER_INVALID"


TOKEN = "ghp_" + "k3Lm9QxT2vRw8sZp4NbYc7HdJ6gF5aXe1uWq"


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.md", f"---\ntitle: x\nnote: {TOKEN}\n---\ntext".encode()),
        ("a.md", f"# Access\n\n{TOKEN}".encode()),
        ("a.txt", TOKEN.encode()),
        ("a.html", f"<p>{TOKEN}</p>".encode()),
        ("a.html", f"<title>{TOKEN}</title><p>x</p>".encode()),
        ("a.docx", docx(words(TOKEN))),
        ("a.pdf", pdf([[line(TOKEN, 700)]])),
    ],
)
def test_a_credential_is_refused_wherever_it_stands(name: str, data: bytes) -> None:
    with pytest.raises(InvalidInput) as refusal:
        prepared(data, Header(name, "s"))
    assert (refusal.value.reason, refusal.value.metadata["kind"]) == ("CREDENTIAL", "github-pat")
    assert TOKEN not in str(refusal.value)


def test_what_is_masked_is_stored_nowhere_and_positions_are_those_of_the_masked_text() -> None:
    masking = replace(PREPARATION, masking=True)
    data = b"---\ntitle: Ask ann@skarholm.io\n---\n# Ask ann@skarholm.io\n\nOr ben@skarholm.io."
    found = masking.prepare("acme", HEADER, data)
    assert "@" not in str(found.passages)
    assert found.document.metadata.title == "Ask [e-mail]"
    ((block,),) = (chunk.blocks for chunk in found.chunks)
    assert found.document.text[block.start : block.end] == block.text == "Or [e-mail]."
    assert found.revision != prepared(data).revision
    assert found.revision == masking.prepare("acme", HEADER, data).revision


def test_what_is_not_to_be_masked_stays() -> None:
    assert prepared(b"Ask ann@skarholm.io.").passages[0].text == "Ask ann@skarholm.io."
