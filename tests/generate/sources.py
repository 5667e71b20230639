"""Sources as assemble sends them, built from blocks."""

from services.generate.evidence import Block, Kind, Source


def source(
    label: str,
    *blocks: Block,
    title: str = "Handbook",
    headings: tuple[str, ...] = (),
    document: str = "",
    score: float = 0.9,
    is_suspected: bool = False,
) -> Source:
    texts = ("\n".join(filter(None, (block.context, block.text))) for block in blocks)
    return Source(
        label=label,
        document=document or f"{label}.md",
        title=title,
        headings=headings,
        text="\n\n".join(texts),
        blocks=blocks,
        score=score,
        is_suspected=is_suspected,
    )


def prose(text: str) -> Block:
    return Block(Kind.PARAGRAPH, text)


def table(text: str, context: str = "") -> Block:
    return Block(Kind.TABLE, text, context)


def code(text: str) -> Block:
    return Block(Kind.CODE, text)


def items(text: str) -> Block:
    return Block(Kind.LIST, text)
