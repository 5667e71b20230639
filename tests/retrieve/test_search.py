"""Search over a real engine: what is found, and what never is."""

from dataclasses import replace

import pytest

from chassis.errors import ContractMismatch, DataViolation, Forbidden, Unavailable
from chassis.identity import AccessLevel
from corpus.points import EVERYBODY, Key, State, to_payload
from services.retrieve.filters import Filters
from services.retrieve.fuse import Space
from services.retrieve.search import Ranking
from tests.retrieve.engine import PASSAGE, SMALL, Shelf, passage
from tests.retrieve.seeker import ANA, FUSION, ask, asked, axis, ids

POINT = "11111111-1111-4111-8111-111111111111"
DRAFTER = replace(ANA, roles=frozenset({"drafts"}))


async def test_the_nearest_come_first_and_equal_ones_in_order_of_their_place(shelf: Shelf) -> None:
    near, far = axis(0), [0.5, 0.5, *axis(0)[2:]]
    rows = [(passage(chunk=n), near if n in {2, 10} else far) for n in (10, 3, 2)]
    ten, three, two = await shelf.put(*rows)
    await shelf.move_to("acme", 1)
    found = await ask(shelf)
    assert ids(found) == [two, ten, three]
    assert [round(each.score, 3) for each in found.passages] == [1.0, 1.0, 0.707]
    assert ids(await ask(shelf, wanted=asked(top_k=1))) in ([two], [ten])


async def test_a_tenant_that_never_published_finds_nothing_at_epoch_0(shelf: Shelf) -> None:
    await shelf.put((passage(valid_from=0), axis(0)))
    found = await ask(shelf, replace(ANA, tenant="new"))
    assert (found.passages, found.candidates, found.epoch) == ((), 0, 0)


async def test_rows_show_from_their_epoch_up_to_before_their_end(shelf: Shelf) -> None:
    old = passage(revision="r1", valid_from=1, valid_to=3)
    new = passage(revision="r2", valid_from=3)
    await shelf.put((old, axis(0)), (new, axis(0)))
    seen = []
    for epoch in (1, 2, 3, 4):
        await shelf.move_to("acme", epoch)
        seen.append([each.passage.revision for each in (await ask(shelf)).passages])
    assert seen == [["r1"], ["r1"], ["r2"], ["r2"]]


async def test_a_draft_never_appears_in_a_published_query(shelf: Shelf) -> None:
    _, draft = await shelf.put(
        (passage(chunk=1), axis(0)), (passage(chunk=2, state=State.DRAFT), axis(0))
    )
    await shelf.move_to("acme", 1)
    assert draft not in ids(await ask(shelf, DRAFTER))
    assert ids(await ask(shelf, DRAFTER, wanted=asked(states=(State.DRAFT,)))) == [draft]
    both = asked(states=(State.DRAFT, State.PUBLISHED))
    assert len(ids(await ask(shelf, DRAFTER, wanted=both))) == 2


async def test_drafts_need_the_role(shelf: Shelf) -> None:
    with pytest.raises(Forbidden):
        await ask(shelf, wanted=asked(states=(State.DRAFT,)))


async def test_a_caller_without_groups_gets_no_group_restricted_passage(shelf: Shelf) -> None:
    await shelf.put((passage(groups=("sre",)), axis(0)))
    await shelf.move_to("acme", 1)
    assert ids(await ask(shelf)) == []
    assert ids(await ask(shelf, replace(ANA, groups=frozenset({"finance"})))) == []
    assert len(ids(await ask(shelf, replace(ANA, groups=frozenset({"sre", "finance"}))))) == 1


async def test_a_group_called_like_everybodys_mark_opens_nothing_more(shelf: Shelf) -> None:
    await shelf.put((passage(groups=("sre",)), axis(0)))
    await shelf.move_to("acme", 1)
    assert ids(await ask(shelf, replace(ANA, groups=frozenset({EVERYBODY})))) == []


async def test_the_level_bounds_what_is_read(shelf: Shelf) -> None:
    rows = [(passage(chunk=level, access=level), axis(0)) for level in AccessLevel]
    await shelf.put(*rows)
    await shelf.move_to("acme", 1)
    counts = [len(ids(await ask(shelf, replace(ANA, level=level)))) for level in AccessLevel]
    assert counts == [1, 2, 3]


async def test_filters_only_narrow(shelf: Shelf) -> None:
    runbook, policy, other = await shelf.put(
        (passage(chunk=1), axis(0)),
        (passage(chunk=2, document_type="policy", document_id="p.md", area=""), axis(0)),
        (passage(chunk=3, tenant="umbrella", document_type="policy"), axis(0)),
    )
    await shelf.move_to("acme", 1)
    cases = {
        Filters(document_types=("policy",)): [policy],
        Filters(document_types=("policy", "runbook")): [policy, runbook],
        Filters(document_ids=("p.md", "q.md")): [policy],
        Filters(areas=("storage",)): [runbook],
        Filters(areas=("storage",), document_types=("policy",)): [],
        Filters(document_types=("nothing",)): [],
    }
    for filters, expected in cases.items():
        found = ids(await ask(shelf, wanted=asked(filters=filters)))
        assert sorted(found) == sorted(expected)
        assert other not in found


async def test_the_threshold_cuts_and_both_numbers_are_told(shelf: Shelf) -> None:
    await shelf.put((passage(chunk=1), axis(0)), (passage(chunk=2), axis(1)))
    await shelf.move_to("acme", 1)
    found = await ask(shelf, ranking=Ranking(FUSION, 50, {Space.COSINE: 0.5}))
    assert (found.candidates, found.passed, len(found.passages)) == (2, 1, 1)
    other = await ask(shelf, ranking=Ranking(FUSION, 50, {Space.BM25: 0.5}))
    assert (other.candidates, other.passed) == (2, 2)


MANDATORY = [
    Key.TENANT,
    Key.VALID_FROM,
    Key.VALID_TO,
    Key.ACCESS,
    Key.GROUPS,
    Key.STATE,
    Key.CHUNKING,
]


@pytest.mark.parametrize("field", MANDATORY)
async def test_a_legacy_point_without_a_field_never_appears(shelf: Shelf, field: Key) -> None:
    payload = to_payload(PASSAGE)
    del payload[field.value]
    await shelf.put_raw((POINT, payload, axis(0)))
    await shelf.move_to("acme", 1)
    assert ids(await ask(shelf)) == []


NEVER_FOUND = {
    "access as a number": {Key.ACCESS: 1},
    "tenant as a number": {Key.TENANT: 1},
    "no groups at all": {Key.GROUPS: []},
    "state as a flag": {Key.STATE: True},
    "epoch as a fraction": {Key.VALID_FROM: 0.5},
    "epoch as a word": {Key.VALID_FROM: "1"},
    "another chunking": {Key.CHUNKING: "blocks0"},
}


@pytest.mark.parametrize("changes", NEVER_FOUND.values(), ids=NEVER_FOUND)
async def test_values_of_another_type_match_nothing(
    shelf: Shelf, changes: dict[str, object]
) -> None:
    await shelf.put_raw((POINT, {**to_payload(PASSAGE), **changes}, axis(0)))
    await shelf.move_to("acme", 1)
    assert ids(await ask(shelf)) == []


VIOLATIONS = {
    "tenant as a list": {Key.TENANT: ["acme", "umbrella"]},
    "access as a list": {Key.ACCESS: ["public", "restricted"]},
    "state as a list": {Key.STATE: ["published", "draft"]},
    "groups as a word": {Key.GROUPS: EVERYBODY},
    "groups and everybody": {Key.GROUPS: [EVERYBODY, "sre"]},
    "chunking as a list": {Key.CHUNKING: [PASSAGE.chunking_version]},
    "epochs as a list": {Key.VALID_FROM: [1, 9]},
    "title as a number": {Key.TITLE: 5},
    "document as a number": {Key.DOCUMENT: 5},
    "no blocks": {Key.BLOCKS: []},
    "text as a number": {Key.BLOCKS: [{**to_payload(PASSAGE)[Key.BLOCKS][0], "text": 5}]},
}


@pytest.mark.parametrize("changes", VIOLATIONS.values(), ids=VIOLATIONS)
async def test_one_violation_fails_the_whole_call_and_names_the_point(
    shelf: Shelf, changes: dict[str, object]
) -> None:
    await shelf.put((passage(chunk=7), axis(0)))
    await shelf.put_raw((POINT, {**to_payload(PASSAGE), **changes}, axis(1)))
    await shelf.move_to("acme", 1)
    with pytest.raises(DataViolation) as violation:
        await ask(shelf)
    assert violation.value.metadata["point_id"] == POINT


async def test_an_index_that_nobody_set_up_is_unavailable(shelf: Shelf) -> None:
    with pytest.raises(Unavailable) as missing:
        await ask(replace(shelf, alias="nobody"))
    assert missing.value.reason == "INDEX_MISSING"


async def test_another_profile_is_refused(shelf: Shelf) -> None:
    other = replace(shelf, profile=replace(SMALL, id="other", dimensions=16))
    with pytest.raises(ContractMismatch, match="small, expected other"):
        await ask(other)
