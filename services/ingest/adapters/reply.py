"""How an adapter's process is asked and answers: bytes on its input, one JSON object on its output.

A converter reads what strangers wrote. Whatever it does to its process ends with that process, and
the process can do little: it is given no environment, may write no file, and has bounds of memory
and of computing time that the system keeps.
"""

import json
import os
import resource
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, field

# Most bytes of the converter's own memory, and most seconds of computing.
MEMORY = 400 * 1024 * 1024
CPU_SECONDS = 30


@dataclass(frozen=True, slots=True)
class Converted:
    """A document as Markdown. `said` is what it says of itself besides, by field and unchecked."""

    text: str
    title: str = ""
    said: dict[str, str] = field(default_factory=dict)


class Unreadable(Exception):
    """The document cannot be read. The message says why and how to mend it, and names no text."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def answer(convert: Callable[[bytes], Converted]) -> None:
    """Convert the input and write the outcome: the whole life of an adapter's process."""
    # Some converters print, which would end up in the answer.
    output = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    _bound()
    reply = _reply(convert, sys.stdin.buffer.read())
    with os.fdopen(output, "w", encoding="ascii") as pipe:
        json.dump(reply, pipe)


def _bound() -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _reply(convert: Callable[[bytes], Converted], data: bytes) -> dict[str, object]:
    try:
        return {"converted": asdict(convert(data))}
    except Unreadable as error:
        return {"reason": error.reason, "message": str(error)}
    except MemoryError:
        complaint = f"takes more than {MEMORY >> 20} MiB of memory to be read; divide it"
        return {"reason": "DOCUMENT_TOO_LARGE", "message": complaint}
    except Exception as error:  # noqa: BLE001 - the process's edge; what it meant is the document's
        complaint = f"it is damaged, so that its converter fails ({type(error).__name__})"
        return {"reason": "DAMAGED", "message": f"{complaint}; save it anew"}
