import pytest

from services.ingest.adapters import webpage
from services.ingest.adapters.reply import Unreadable
from services.ingest.adapters.webpage import convert


def shown(body: str) -> str:
    return convert(f"<html><body>{body}</body></html>".encode()).text.strip()


def test_what_a_reader_sees_becomes_markdown() -> None:
    page = """
    <h1>Disk full</h1><p>Free it, <b>now</b>, with <code>rm</code>: see
    <a href="https://wiki.example/disk">the page</a>.</p>
    <ol><li>First<ul><li>inside</li></ul></li><li>Second</li></ol>
    <pre><code class="language-sh"># no heading
      df -h</code></pre>
    <table><tr><th>host</th><th>size</th></tr><tr><td>a|b</td><td>1<br>2</td></tr></table>
    <blockquote><p>Quoted</p></blockquote><dl><dt>Term</dt><dd>Meaning</dd></dl>"""
    text = shown(page)
    for expected in (
        "# Disk full\n",
        "Free it, **now**, with `rm`: see [the page](https://wiki.example/disk).",
        "1. First\n",
        "   - inside",
        "2. Second",
        "```sh\n# no heading\n      df -h\n```",
        "| host | size |\n| --- | --- |\n| a\\|b | 1 2 |",
        "> Quoted",
        "Term",
        "Meaning",
    ):
        assert expected in text


@pytest.mark.parametrize(
    "part",
    [
        "<script>gone()</script>",
        "<style>gone{}</style>",
        "<nav><a href='/'>gone</a></nav>",
        "<template><p>gone</p></template>",
        "<noscript>gone</noscript>",
        "<p hidden>gone</p>",
        "<p style='display: none'>gone</p>",
        "<span style='visibility:hidden'>gone</span>",
        "<!-- gone -->",
        "<form><input value='gone'><button>gone</button></form>",
        "<img src='data:image/png;base64,gone'>",
    ],
)
def test_what_a_reader_does_not_see_is_left_out(part: str) -> None:
    assert "gone" not in shown(f"<p>before</p>{part}<p>after</p>")
    assert shown(f"<p>before</p>{part}<p>after</p>").startswith("before")


def test_a_fence_is_longer_than_those_inside() -> None:
    assert shown("<pre>a\n```\nb</pre>") == "````\na\n```\nb\n````"


def test_text_that_looks_like_markdown_stays_text() -> None:
    assert shown("<p># one</p><p>1. two</p><p>---</p>") == "\\# one\n\n1\\. two\n\n\\---"


def test_the_head_gives_title_and_fields() -> None:
    page = b"""<html lang=de><head><title>Disk &amp; more</title><meta charset=utf-8>
    <meta name="Access" content="restricted"><meta name=groups content="sre, dba"></head>x"""
    found = convert(page)
    assert found.title == "Disk & more"
    assert found.said == {"Access": "restricted", "groups": "sre, dba"}
    assert found.text == "x\n"


@pytest.mark.parametrize(
    ("head", "encoding"),
    [
        (b"\xef\xbb\xbf", "utf-8"),
        (b"\xff\xfe", "utf-16-le"),
        (b"\xfe\xff", "utf-16-be"),
        (b"<meta charset=utf-8>", "utf-8"),
        (b"<META CHARSET='ISO-8859-1'>", "cp1252"),
        (b'<meta http-equiv="content-type" content="text/html; charset=latin1">', "cp1252"),
        (b"<meta charset=windows-1250>", "cp1250"),
        (b'<?xml version="1.0" encoding="shift_jis"?>', "shift_jis"),
        (b"", "utf-8"),
    ],
)
def test_a_page_is_read_in_its_own_encoding(head: bytes, encoding: str) -> None:
    text = "日本" if encoding == "shift_jis" else "für"
    page = head + f"<p>{text}</p>".encode(encoding)
    assert convert(page).text.strip() == text


@pytest.mark.parametrize(
    ("data", "reason", "message"),
    [
        (b"<p>\n\xe9</p>", "NOT_UTF8", "line 2: not utf-8 at byte 4; .* declare its encoding"),
        (b"<meta charset=utf-8>\xe9", "NOT_UTF8", "not utf-8 at byte 20"),
        (b"<meta charset=shift_jis>\xff", "WRONG_ENCODING", "not shift_jis"),
        (b"<meta charset=klingon>x", "WRONG_ENCODING", "'klingon' is unknown"),
        ("<p>x</p>".encode("utf-16-le"), "BINARY", "a zero character"),
        (b"<div>" * 3_000 + b"deep", "TOO_DEEP", "more than 1,024 deep"),
    ],
)
def test_a_page_that_cannot_be_read_is_refused(data: bytes, reason: str, message: str) -> None:
    with pytest.raises(Unreadable, match=message) as refusal:
        convert(data)
    assert refusal.value.reason == reason


def test_a_large_page_is_read_like_a_small_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webpage, "LARGE", 10_000)
    part = "<h2>Part</h2><p>some <b>words</b></p><p hidden>gone</p><ul><li>a</li></ul>"
    assert shown(part * 200) == "\n\n".join([shown(part)] * 200)


@pytest.mark.parametrize("page", ["<p>a<p>b<table><tr><td>c", "a < b & c", "<<<>>>", "</div>x"])
def test_broken_pages_are_read_as_far_as_they_go(page: str) -> None:
    assert convert(page.encode()).text.strip()
