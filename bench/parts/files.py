"""Folders of documents, and the words that they are made of."""

import random
from pathlib import Path

SECTIONS = 4
WORDS_EACH = 60
WORDS = """
the primary disk volume replica queue alert restart drain promote check before after until
never always unless writer reader node host limit threshold minutes gigabytes owner page
escalate runbook section table command output expected error timeout
""".split()  # noqa: SIM905 - a list would take a line a word


def write(folder: Path, files: int) -> None:
    """A folder of documents that share no text."""
    draw = random.Random(files)  # noqa: S311 - words of documents
    for number in range(files):
        sections = (
            f"## Part {part}\n\n{' '.join(draw.choices(WORDS, k=WORDS_EACH))} {number}.{part}.\n"
            for part in range(SECTIONS)
        )
        (folder / f"{number:05}.md").write_text(f"# Document {number}\n\n" + "\n".join(sections))
