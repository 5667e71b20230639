import threading

import pytest

from chassis.errors import InvalidInput
from services.ingest.convert import Page, convert, read, run
from services.ingest.document import Format
from services.ingest.stop import NEVER, Stop, Stopped
from tests.ingest.papers import docx, line, paragraph, pdf, words

STUBBORN = "tests.ingest.stubborn"
SENTENCE = "The pump is stopped before the valve is opened, and the gauge is read by two."
PDF = pdf([[line("Pump manual", 780, 24), *paragraph(SENTENCE, 740)]], title="Pumps")


def asked(first: bytes, stop: Stop = NEVER, seconds: float = 30.0) -> str:
    return read(run(STUBBORN, first, "x.pdf", stop, seconds), "x.pdf").text


def test_each_format_is_converted_in_a_process_of_its_own() -> None:
    assert convert(b"<title>T</title><h1>H</h1>", "x.html", Format.HTML, NEVER) == Page(
        "# H\n", "T", {}
    )
    assert convert(docx(words("x"), title="T"), "x.docx", Format.DOCX, NEVER) == Page(
        "x\n", "T", {}
    )
    page = convert(PDF, "x.pdf", Format.PDF, NEVER)
    assert (page.title, page.text.startswith("# Pump manual\n\nThe pump")) == ("Pumps", True)


def test_a_refusal_names_the_document_and_the_reason() -> None:
    with pytest.raises(InvalidInput, match=r"x\.html: line 1: not utf-8") as refusal:
        convert(b"\xff\xfd", "x.html", Format.HTML, NEVER)
    assert refusal.value.reason == "NOT_UTF8"


def test_what_no_editor_shows_is_taken_out_and_line_ends_are_one_kind() -> None:
    page = "<title>T\x07</title><pre>a\rb\x0cc\x1bd\x9f</pre><p>e\ufeff&#13;</p>"
    text = convert(page.encode(), "x.html", Format.HTML, NEVER).text
    assert not {"\r", "\x07", "\x0c", "\x1b", "\x9f", "\ufeff"} & set(text)
    assert "cd" in text


@pytest.mark.parametrize(
    ("first", "reason", "message"),
    [
        (b"m", "DOCUMENT_TOO_LARGE", "takes more than 400 MiB of memory to be read; divide it"),
        (b"w", "DAMAGED", r"its converter fails \(FileNotFoundError\); save it anew"),
        (b"?", "DAMAGED", r"its converter fails \(ValueError\); save it anew"),
    ],
)
def test_a_converter_that_fails_is_a_refusal(first: bytes, reason: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=rf"^x\.pdf: .*{message}") as refusal:
        asked(first)
    assert refusal.value.reason == reason


def test_a_converter_that_dies_takes_nothing_with_it() -> None:
    with pytest.raises(InvalidInput, match=r"x\.pdf: it is damaged, or takes more") as refusal:
        asked(b"d")
    assert refusal.value.reason == "NOT_CONVERTED"


def test_a_document_larger_than_a_pipe_arrives_whole() -> None:
    assert asked(b"l" * 5_000_000) == "5000000"


def test_a_process_that_never_reads_holds_nobody_up() -> None:
    with pytest.raises(InvalidInput, match="it is damaged, or takes more"):
        run("tests.ingest.missing", b"x" * 5_000_000, "x.pdf", NEVER)


def test_a_converter_that_prints_is_heard_all_the_same() -> None:
    assert asked(b"p") == "read"


def test_a_converter_is_given_no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICE_EMBEDDING_API_KEY", "secret")
    assert "SLUICE" not in asked(b"e")


def test_a_converter_that_hangs_is_ended() -> None:
    with pytest.raises(InvalidInput, match="not converted within 0 seconds") as refusal:
        asked(b"h", seconds=0.2)
    assert refusal.value.reason == "NOT_CONVERTED"


def test_a_converter_is_ended_with_its_caller() -> None:
    stop = Stop()
    asking = threading.Timer(0.2, stop.ask)
    asking.start()
    with pytest.raises(Stopped):
        asked(b"h", stop)
    asking.join()
