"""Which candidates get in: overlap, budget, rank, layout."""

from dataclasses import replace

from services.assemble.admit import Decision
from services.assemble.assembly import Selection
from tests.assemble.desk import block, decisions, evidence, full_count, run, texts, window

ONE, TWO, THREE = block(1, "Stop the writer."), block(2, "Free space."), block(3, "Start it.")
OTHER_ONE = block(1, "Call the owner.", section="s2")
OTHER_TWO = block(2, "Write it down.", section="s2")
LONG = "Check every volume of the host and note its use before anything is deleted. " * 20


def test_overlapping_windows_send_the_shared_block_once() -> None:
    found = texts(
        run([window(0.9, ONE, TWO), window(0.8, TWO, THREE), window(0.7, OTHER_ONE, OTHER_TWO)])
    )
    assert found == [
        "Stop the writer.\n\nFree space.",
        "Start it.",
        "Call the owner.\n\nWrite it down.",
    ]


def test_swapping_ranks_moves_the_shared_block_and_never_loses_it() -> None:
    found = texts(
        run([window(0.8, ONE, TWO), window(0.9, TWO, THREE), window(0.7, OTHER_ONE, OTHER_TWO)])
    )
    assert found == [
        "Free space.\n\nStart it.",
        "Stop the writer.",
        "Call the owner.\n\nWrite it down.",
    ]


def test_a_large_first_candidate_that_does_not_fit_marks_nothing_as_seen() -> None:
    large = window(0.9, ONE, block(2, LONG))
    small = window(0.8, ONE)
    assembly = run([large, small], allowance=120)
    assert decisions(assembly) == [Decision.OVER_BUDGET, Decision.ADMITTED]
    assert texts(assembly) == ["Stop the writer."]
    assert assembly.outcomes[0].verdict.tokens > 120


def test_the_same_candidate_twice_gets_one_label() -> None:
    assembly = run([window(0.9, ONE, TWO), window(0.9, ONE, TWO)])
    assert decisions(assembly) == [Decision.ADMITTED, Decision.DUPLICATE]
    assert [outcome.label for outcome in assembly.outcomes] == ["S1", ""]
    assert len(assembly.sources) == 1


def test_the_same_text_at_another_position_is_separate_evidence() -> None:
    warning = "Never run this on the primary."
    assembly = run([window(0.9, block(1, warning)), window(0.8, block(7, warning))])
    assert texts(assembly) == [warning, warning]


def test_the_same_text_in_another_revision_or_document_is_separate_evidence() -> None:
    newer = replace(ONE, at=ONE.at._replace(revision="r2"))
    elsewhere = replace(ONE, at=ONE.at._replace(document="handbook"))
    assembly = run([window(0.9, ONE), window(0.8, newer), window(0.7, elsewhere)])
    assert texts(assembly) == [ONE.text] * 3


def test_exactly_the_allowance_fits_and_one_token_less_does_not() -> None:
    both = [window(0.9, ONE, TWO), window(0.8, THREE)]
    needed = run(both).tokens
    assert decisions(run(both, allowance=needed)) == [Decision.ADMITTED, Decision.ADMITTED]
    short = run(both, allowance=needed - 1)
    assert decisions(short) == [Decision.ADMITTED, Decision.OVER_BUDGET]
    assert short.tokens + short.outcomes[1].verdict.tokens == needed


def test_nothing_admitted_means_no_messages() -> None:
    assembly = run([window(0.9, block(1, LONG))], allowance=60)
    assert (assembly.system, assembly.user, assembly.sources, assembly.tokens) == ("", "", (), 0)
    assert decisions(assembly) == [Decision.OVER_BUDGET]


def test_no_candidates_mean_no_messages() -> None:
    assert run([]).sources == ()


def test_ranks_below_the_number_of_sources_are_left_out_and_duplicates_still_told() -> None:
    candidates = [window(0.9, ONE), window(0.8, OTHER_ONE), window(0.7, THREE), window(0.6, ONE)]
    assert decisions(run(candidates, max_sources=2)) == [
        Decision.ADMITTED,
        Decision.ADMITTED,
        Decision.BELOW_RANK,
        Decision.DUPLICATE,
    ]


def test_whole_keeps_chunks_as_retrieved() -> None:
    windows = [window(0.9, ONE, TWO), window(0.8, TWO, THREE), window(0.7, TWO)]
    assembly = run(windows, selection=Selection.WHOLE)
    assert texts(assembly) == ["Stop the writer.\n\nFree space.", "Free space.\n\nStart it."]
    assert decisions(assembly)[2] is Decision.DUPLICATE


def test_contiguous_joins_neighbours_in_source_order_under_the_better_label() -> None:
    windows = [window(0.9, TWO, THREE), window(0.8, OTHER_ONE), window(0.7, ONE, TWO)]
    assembly = run(windows, selection=Selection.CONTIGUOUS)
    assert texts(assembly) == ["Stop the writer.\n\nFree space.\n\nStart it.", "Call the owner."]
    assert [outcome.label for outcome in assembly.outcomes] == ["S1", "S2", "S1"]
    assert [member.index for member in assembly.sources[0].members] == [0, 2]


def test_contiguous_closes_the_gap_between_two_sources_and_renumbers_the_rest() -> None:
    windows = [window(0.9, ONE), window(0.8, THREE), window(0.7, OTHER_ONE), window(0.6, TWO)]
    assembly = run(windows, selection=Selection.CONTIGUOUS)
    assert [source["label"] for source in evidence(assembly)] == ["S1", "S2"]
    assert texts(assembly)[0] == "Stop the writer.\n\nFree space.\n\nStart it."
    assert [outcome.label for outcome in assembly.outcomes] == ["S1", "S1", "S2", "S1"]
    assert assembly.tokens == full_count(assembly)


def test_contiguous_may_join_when_the_number_of_sources_is_reached() -> None:
    windows = [window(0.9, ONE), window(0.8, OTHER_ONE), window(0.7, TWO)]
    assembly = run(windows, selection=Selection.CONTIGUOUS, max_sources=1)
    assert decisions(assembly) == [Decision.ADMITTED, Decision.BELOW_RANK, Decision.ADMITTED]


def test_contiguous_never_joins_across_sections_or_missing_blocks() -> None:
    windows = [window(0.9, ONE), window(0.8, OTHER_TWO), window(0.7, THREE)]
    assert len(run(windows, selection=Selection.CONTIGUOUS).sources) == 3


def test_contiguous_joins_pieces_of_one_block_in_order() -> None:
    pieces = [block(4, f"Part {n}.", piece=n) for n in range(12)]
    windows = [window(0.9 - n / 100, piece) for n, piece in enumerate(reversed(pieces))]
    windows.append(window(0.1, block(5, "The end.")))
    assembly = run(windows, selection=Selection.CONTIGUOUS)
    parts = [f"Part {n}." for n in range(12)]
    assert texts(assembly) == ["\n\n".join([*parts, "The end."])]


def test_contiguous_does_not_join_over_a_piece_that_is_missing() -> None:
    seen = window(0.9, block(4, "Part 0.", piece=0))
    dropped = window(0.8, block(4, LONG, piece=1))
    after = window(0.7, block(5, "The end."))
    known = run([seen, dropped, after], selection=Selection.CONTIGUOUS, allowance=150)
    assert texts(known) == ["Part 0.", "The end."]
    far = window(0.7, block(5, "The end.", start=900))
    assert texts(run([seen, far], selection=Selection.CONTIGUOUS)) == ["Part 0.", "The end."]


def test_ties_are_broken_by_document_and_numeric_chunk() -> None:
    windows = [
        window(0.5, block(1, "ten"), chunk=10),
        window(0.5, block(2, "two"), chunk=2),
        window(0.5, block(3, "first"), document="alpha", chunk=99),
    ]
    assert texts(run(windows)) == ["first", "two", "ten"]
