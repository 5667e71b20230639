from services.generate.evidence import Kind, Source
from services.generate.quotes import quotables
from tests.generate.sources import code, items, prose, source, table

HEADER = "| data | kept for |"
RULE = "|---|---|"


def shown(found: Source) -> list[tuple[Kind, str]]:
    return [(piece.kind, piece.text) for piece in quotables(found)]


def test_each_kind_of_block_falls_into_its_own_pieces() -> None:
    found = source(
        "S1",
        prose("Stop it. Then wait."),
        items("- first\n- second"),
        code("run --now\n  more"),
        table(f"{HEADER}\n{RULE}\n| logs | 30 days |"),
    )
    assert shown(found) == [
        (Kind.PARAGRAPH, "Stop it."),
        (Kind.PARAGRAPH, "Then wait."),
        (Kind.LIST, "first"),
        (Kind.LIST, "second"),
        (Kind.CODE, "run --now"),
        (Kind.CODE, "more"),
        (Kind.TABLE, "| logs | 30 days |"),
    ]


def test_rows_of_a_later_piece_take_their_header_from_the_context() -> None:
    found = source("S1", table("| mail | 18 months |", context=f"{HEADER}\n{RULE}"))
    (row,) = quotables(found)
    assert (row.text, row.context) == ("| mail | 18 months |", HEADER)


def test_text_that_no_block_accounts_for_is_prose() -> None:
    found = Source("S1", "a.md", "Title", (), "Loose words. More.", (), 0.5)
    assert shown(found) == [(Kind.PARAGRAPH, "Loose words."), (Kind.PARAGRAPH, "More.")]


def test_the_same_block_twice_is_found_at_both_places() -> None:
    found = source("S1", prose("Never purge it."), prose("Never purge it."))
    assert [piece.span.start for piece in quotables(found)] == [0, 17]


def test_a_piece_that_only_points_elsewhere_is_not_quoted() -> None:
    links = "_[The guide](../guide.md)_.\n\n![a plan](plan.png)\n\nhttps://wiki.example/plan"
    found = source("S1", prose("Read [the guide](../guide.md) first."), prose(links))
    assert shown(found) == [(Kind.PARAGRAPH, "Read [the guide](../guide.md) first.")]
