"""Provider streams drawn at random: replies that are right, and what can become of them."""

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from services.generate.evidence import Source
from tests.generate.sources import prose, source
from tests.scripted_provider import replies

# For each language two sources, then what they carry by label, and what they do not carry.
WORLDS: Sequence[tuple[tuple[str, str], Sequence[tuple[str, str]], Sequence[tuple[str, str]]]] = (
    (
        (
            "The deploy window is Monday to Thursday, 09:30 to 15:30. Never purge the captures.",
            "Lantern calls the secondary after 10 minutes. Logs are kept for 30 days.",
        ),
        (
            ("The deploy window is Monday to Thursday, 09:30 to 15:30.", "S1"),
            ("Do not purge the captures!", "S1"),
            ("Logs are kept for thirty days.", "S2"),
            ("After 10 min Lantern calls the secondary.", "S2"),
        ),
        (
            ("The deploy window is Monday to Thursday, 09:30 to 16:30.", "S1"),
            ("Purge the captures.", "S1"),
            ("Logs are kept for 30 hours.", "S2"),
            ("Beacon calls the secondary after 10 minutes.", "S2"),
            ("Logs are kept for 30 days.", "S1"),
        ),
    ),
    (
        (
            "Der Alarm kommt nach 60 Sekunden. Fotos sind im Serverraum verboten.",
            "Die Kassette wird bei 1.500 Euro geleert, spätestens jeden Freitag.",
        ),
        (
            ("Der Alarm kommt nach 60 Sekunden.", "S1"),
            ("Fotos sind im Serverraum nicht erlaubt.", "S1"),
            ("Bei 1500 Euro wird die Kassette geleert.", "S2"),
        ),
        (
            ("Der Alarm kommt nach 60 Minuten.", "S1"),
            ("Fotos sind im Serverraum erlaubt.", "S1"),
            ("Bei 2.500 Euro wird die Kassette geleert.", "S2"),
        ),
    ),
    (
        (
            "Os objetos são guardados durante 60 dias. Não enviamos objetos com mais de 20 quilos.",
            "O vento não passa de 38 nós em Lysund.",
        ),
        (
            ("Os objetos são guardados durante 60 dias.", "S1"),
            ("Não enviamos objetos com mais de 20 kg.", "S1"),
            ("O vento não passa de 38 nós em Lysund.", "S2"),
        ),
        (
            ("Os objetos são guardados durante 90 dias.", "S1"),
            ("Enviamos objetos com mais de 20 kg.", "S1"),
            ("O vento não passa de 38 nós em Skarholm.", "S2"),
        ),
    ),
    (
        ("車両は出発の45分前までに並びます。", "手荷物は20キログラムまで無料です。🚢"),
        (("車両は出発の45分前までに並びます。", "S1"), ("手荷物は20kgまで無料です。", "S2")),
        (("車両は出発の30分前までに並びます。", "S1"), ("手荷物は20グラムまで無料です。", "S2")),
    ),
)
MARKS: Sequence[Callable[[str], str]] = (
    lambda label: f" [{label}]",
    lambda label: f"[{label}]",
    lambda label: f" [[{label}]]",
    lambda label: f" \u3010{label}\u3011",
    lambda label: f" [{label}, {label}]",
    lambda label: f" [{label}][{label}]",
)
TEXT_BESIDE = (
    " arr[0]",
    " [abc]",
    " [1.5]",
    " \u201c\\\u201d",
    "\n\n",
    "\n- ",
    "\t",
    "\u2028",
    "\x85",
    " 🚢",
)
NOISE = (
    '"',
    "\\",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "S9",
    "[S9]",
    "0",
    "7",
    " ",
    "\\u12",
    "`",
    "\ud83d",
)


@dataclass
class Stream:
    """One stream: what was sent of it as text, and whether it came to its proper end.

    `spoiled` is a sentence in it that its source does not carry, with its mark.
    """

    sources: tuple[Source, ...]
    reply: str
    spoiled: str
    parts: list[bytes] = field(default_factory=list)
    sent: str = ""
    ends_well: bool = True


def drawn(draw: random.Random) -> Stream:
    texts, right, wrong = draw.choice(WORLDS)
    sources = tuple(source(f"S{n}", prose(text)) for n, text in enumerate(texts, start=1))
    mark = draw.choice(MARKS)
    pieces = [f"{text}{mark(label)}" for text, label in draw.choices(right, k=draw.randint(1, 4))]
    spoiled = ""
    if draw.random() < 0.2:
        text, label = draw.choice(wrong)
        spoiled = pieces[draw.randrange(len(pieces))] = f"{text}{mark(label)}"
    if draw.random() < 0.2:
        pieces.insert(draw.randrange(len(pieces) + 1), draw.choice(TEXT_BESIDE))
    reply = _reply(draw, draw.choice((" ", "\n", "  ")).join(pieces))
    for _ in range(draw.choice((0, 0, 0, 1, 1, 3))):
        reply = _changed(draw, reply)
    stream = Stream(sources, reply, spoiled)
    _cut(draw, stream)
    return stream


def _reply(draw: random.Random, answer: str) -> str:
    cited = [label for label in ("S1", "S2") if label in answer]
    fields: list[tuple[str, object]] = [
        ("status", draw.choices(("answered", "insufficient", "maybe"), (18, 2, 1))[0]),
        ("answer", answer),
        ("source_ids", draw.choices((cited, ["S1"], ["S1", "S9"], [], "S1"), (16, 2, 1, 1, 1))[0]),
    ]
    if draw.random() < 0.2:
        draw.shuffle(fields)
    if draw.random() < 0.1:
        fields.insert(
            draw.randrange(4), draw.choice((("more", [{"x": "}"}, 1.5]), ("status", "x")))
        )
    if draw.random() < 0.05:
        fields.pop(draw.randrange(3))
    is_ascii = draw.random() < 0.5
    members = (f"{json.dumps(name)}: {json.dumps(v, ensure_ascii=is_ascii)}" for name, v in fields)
    whole = f"{{{', '.join(members)}}}"
    return draw.choices(
        (whole, f"```json\n{whole}\n```", f"{whole}\n\n", f"So: {whole}"), (8, 2, 1, 1)
    )[0]


def _changed(draw: random.Random, text: str) -> str:
    """The text with something lost, doubled, exchanged or put in."""
    at, length = draw.randrange(len(text) + 1), draw.randint(1, 4)
    piece = text[at : at + length]
    digits = [place for place, sign in enumerate(text) if sign.isdigit()]
    if digits and draw.random() < 0.4:
        at = draw.choice(digits)
        return text[:at] + draw.choice("0123456789") + text[at + 1 :]
    other = draw.choice(
        ("", piece * 2, piece[::-1], draw.choice(NOISE), draw.choice(NOISE) + piece)
    )
    return text[:at] + other + text[at + length :]


def _cut(draw: random.Random, stream: Stream) -> None:
    """The reply in chunks, some of them lost, doubled or out of order; and their end."""
    contents = list(_deltas(draw, stream.reply))
    if len(contents) > 1 and draw.random() < 0.1:
        at = draw.randrange(len(contents) - 1)
        pair = contents[at : at + 2]
        contents[at : at + 2] = draw.choice((pair[1:], [*pair, pair[1]], pair[::-1]))
    chunks: list[bytes] = [replies.chunk("", role="assistant"), *map(_chunk, contents)]
    ending = draw.choices(
        ("stop", "length", "content_filter", "none", "refusal", "cut"), (20, 1, 1, 1, 1, 2)
    )[0]
    stream.ends_well = ending == "stop"
    # Half a character is no text, and becomes the sign for that.
    sent = "".join(contents).encode("utf-16-le", "surrogatepass")
    stream.sent = sent.decode("utf-16-le", "replace")
    chunks += _end(draw, ending)
    whole = b"".join(chunks)
    if ending == "cut":
        whole = whole[: draw.randrange(len(whole))]
    stream.parts = list(_writes(draw, whole))


def _end(draw: random.Random, ending: str) -> list[bytes]:
    if ending in {"none", "cut"}:
        return []
    if ending == "refusal":
        return [replies.chunk(refusal="No."), replies.chunk(finish="stop"), replies.DONE]
    finish, usage = replies.chunk(finish=ending), replies.usage()
    return [finish, *([usage] if draw.random() < 0.8 else []), replies.DONE]


def _chunk(content: str) -> bytes:
    """Escaped, so that half a pair can be sent too."""
    choice = {"index": 0, "delta": {"content": content}, "finish_reason": None}
    data: dict[str, Any] = {
        "id": "fuzz", "object": "chat.completion.chunk", "created": 1, "choices": [choice],
        "model": "scripted-model-2026",
    }  # fmt: skip
    return f"data: {json.dumps(data)}\n\n".encode()


def _deltas(draw: random.Random, text: str) -> Sequence[str]:
    most = draw.choice((1, 3, 12, 60, 1_000))
    found, at = [], 0
    while at < len(text):
        size = draw.randint(1, most)
        found.append(text[at : at + size])
        at += size
    return found


def _writes(draw: random.Random, whole: bytes) -> Sequence[bytes]:
    most = draw.choice((7, 200, 5_000, 100_000))
    found, at = [], 0
    while at < len(whole):
        size = draw.randint(1, most)
        found.append(whole[at : at + size])
        at += size
    return found or [b""]
