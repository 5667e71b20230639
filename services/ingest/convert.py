"""HTML, PDF and DOCX to normalised Markdown, by a process that ends with its document."""

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import IO, Any

from chassis.errors import InvalidInput
from services.ingest.document import Format
from services.ingest.stop import Stop

# Raised by every change of a converter or its options that changes texts.
RULES = "converted1"
ADAPTERS = {
    Format.HTML: "services.ingest.adapters.webpage",
    Format.PDF: "services.ingest.adapters.pdf",
    Format.DOCX: "services.ingest.adapters.word",
}
# Longest that a conversion may take in seconds, and how often it is looked whether anybody waits.
SECONDS = 120.0
LOOK = 0.1

# What no editor shows and no format means; fonts without names of their letters yield such.
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufeff]")
_PAGE = re.compile("\x0c\n?")


@dataclass(frozen=True, slots=True)
class Page:
    """A converted document. `said` is what it says of itself in other places than its text."""

    text: str
    title: str
    said: dict[str, str]


def convert(data: bytes, name: str, form: Format, stop: Stop) -> Page:
    """The document in the bytes as Markdown.

    Raises InvalidInput that says why it cannot be read and how to mend it, and Stopped.
    """
    return read(run(ADAPTERS[form], data, name, stop), name)


def read(answer: bytes, name: str) -> Page:
    """The page in an adapter's answer. Raises InvalidInput where it is a refusal."""
    reply: dict[str, Any] = json.loads(answer)
    if "reason" in reply:
        raise InvalidInput(f"{name}: {reply['message']}", field="data", reason=reply["reason"])
    converted = reply["converted"]
    return Page(_clean(converted["text"]), _clean(converted["title"]), converted["said"])


def run(adapter: str, data: bytes, name: str, stop: Stop, seconds: float = SECONDS) -> bytes:
    """What the module `adapter` answers in a process of its own, which has ended by then.

    Raises InvalidInput (NOT_CONVERTED) when it dies or takes longer, and Stopped.
    """
    with (
        _fed(data) as given,
        subprocess.Popen(  # noqa: S603 - a module of ours
            [sys.executable, "-P", "-m", adapter],
            stdin=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=_environment(),
        ) as process,
    ):
        try:
            output = _output(process, stop, time.monotonic() + seconds)
        except subprocess.TimeoutExpired as error:
            raise _failed(name, f"not converted within {seconds:.0f} seconds; divide it") from error
        finally:
            process.kill()
    if process.returncode:
        raise _failed(
            name,
            "it is damaged, or takes more memory or computing than one document may; export it"
            " anew or divide it",
        )
    return output


def _failed(name: str, complaint: str) -> InvalidInput:
    return InvalidInput(f"{name}: {complaint}", field="data", reason="NOT_CONVERTED")


@contextmanager
def _fed(data: bytes) -> Iterator[IO[bytes]]:
    """The end of a pipe from which a process reads the bytes, as long as it lives."""
    reading, writing = os.pipe()
    feeding = threading.Thread(target=_feed, args=(writing, data))
    feeding.start()
    try:
        with os.fdopen(reading, "rb") as given:
            yield given
    finally:
        # Nobody reads any more, so that writing ends.
        feeding.join()


def _feed(writing: int, data: bytes) -> None:
    with suppress(BrokenPipeError), os.fdopen(writing, "wb", buffering=0) as pipe:
        left = memoryview(data)
        while left:
            left = left[pipe.write(left) :]


def _output(process: "subprocess.Popen[bytes]", stop: Stop, end: float) -> bytes:
    while True:
        stop.check()
        try:
            return process.communicate(timeout=LOOK)[0]
        except subprocess.TimeoutExpired:
            if time.monotonic() > end:
                raise


def _environment() -> dict[str, str]:
    """What finds the modules, and no key."""
    return {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}


def _clean(text: str) -> str:
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    return _UNSEEN.sub("", _PAGE.sub("\n\n", lines))
