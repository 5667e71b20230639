"""What was put before the model: the sources, and the blocks that they are made of."""

from dataclasses import dataclass
from enum import Enum

from chassis.identity import AccessLevel


class Kind(Enum):
    PARAGRAPH = "running prose"
    LIST = "items"
    TABLE = "rows below a header"
    CODE = "lines of a program or its output"


class Scores(Enum):
    """What the sources' scores mean."""

    COSINE = "similarity of vectors, -1 to 1"
    OTHER = "not comparable between questions"


@dataclass(frozen=True, slots=True)
class Block:
    """`text` stands verbatim in its source's text; `context` is repeated from elsewhere."""

    kind: Kind
    text: str
    context: str = ""


@dataclass(frozen=True, slots=True)
class Source:
    """One labelled source.

    `text` is exactly what the model sees of it; a suspected one resembles instructions. Where
    nobody told who may read it, it is held for what the fewest may.
    """

    label: str
    document: str
    title: str
    headings: tuple[str, ...]
    text: str
    blocks: tuple[Block, ...]
    score: float
    is_suspected: bool = False
    level: AccessLevel = AccessLevel.RESTRICTED
