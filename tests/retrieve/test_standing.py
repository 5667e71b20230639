"""Evidence looked at again, over a real engine."""

from dataclasses import replace

import pytest

from chassis.errors import DataViolation, Forbidden, InvalidInput
from chassis.identity import AccessLevel, Caller
from corpus.points import Key, State, to_payload
from services.retrieve.index import Index
from services.retrieve.standing import LARGEST_CHECK, Evidence, Standing, standing
from tests.retrieve.engine import PASSAGE, Shelf, passage
from tests.retrieve.seeker import ANA, axis

POINT = "11111111-1111-4111-8111-111111111111"


async def check(
    shelf: Shelf, epoch: int, *point_ids: str, caller: Caller = ANA, states: tuple[State, ...] = ()
) -> Standing:
    index = Index(shelf.qdrant, shelf.alias, shelf.profile)
    return await standing(index, Evidence(epoch, point_ids, states), caller)


async def test_within_one_epoch_all_evidence_stands(shelf: Shelf) -> None:
    await shelf.move_to("acme", 4)
    assert await check(shelf, 4, POINT) == Standing((), 4)


async def test_what_was_replaced_or_withdrawn_is_gone_in_the_order_asked(shelf: Shelf) -> None:
    stays, replaced, withdrawn = await shelf.put(
        (passage(chunk=1), axis(0)),
        (passage(chunk=2, valid_to=2), axis(0)),
        (passage(chunk=3, valid_to=2), axis(0)),
    )
    await shelf.put((passage(chunk=2, revision="r2", valid_from=2), axis(0)))
    await shelf.move_to("acme", 2)
    asked = (withdrawn, stays, POINT, replaced)
    assert await check(shelf, 1, *asked) == Standing((withdrawn, POINT, replaced), 2)


async def test_what_the_caller_may_not_read_is_gone_like_what_never_was(shelf: Shelf) -> None:
    names = await shelf.put(
        (passage(chunk=1, access=AccessLevel.RESTRICTED), axis(0)),
        (passage(chunk=2, groups=("sre",)), axis(0)),
        (passage(chunk=3, state=State.DRAFT), axis(0)),
        (passage(chunk=4, chunking_version="blocks0"), axis(0)),
        (passage(chunk=5, tenant="umbrella"), axis(0)),
        (passage(chunk=6), axis(0)),
    )
    await shelf.move_to("acme", 2)
    assert (await check(shelf, 1, *names)).gone == tuple(names[:-1])
    reader = replace(ANA, level=AccessLevel.RESTRICTED, groups=frozenset({"sre"}))
    assert (await check(shelf, 1, *names, caller=reader)).gone == tuple(names[2:-1])


async def test_drafts_are_looked_for_only_with_the_role(shelf: Shelf) -> None:
    (draft,) = await shelf.put((passage(state=State.DRAFT), axis(0)))
    await shelf.move_to("acme", 2)
    with pytest.raises(Forbidden):
        await check(shelf, 1, draft, states=(State.DRAFT,))
    drafter = replace(ANA, roles=frozenset({"drafts"}))
    assert (await check(shelf, 1, draft, caller=drafter, states=(State.DRAFT,))).gone == ()


async def test_a_point_that_breaks_the_contract_fails_the_check(shelf: Shelf) -> None:
    spoiled = {**to_payload(PASSAGE), Key.ACCESS.value: ["public", "restricted"]}
    await shelf.put_raw((POINT, spoiled, axis(0)))
    await shelf.move_to("acme", 2)
    with pytest.raises(DataViolation):
        await check(shelf, 1, POINT)


@pytest.mark.parametrize("name", ["", "1", POINT.replace("-", ""), "x" * 36])
async def test_what_is_no_point_id_is_refused(shelf: Shelf, name: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        await check(shelf, 1, POINT, name)
    assert refused.value.field == "point_ids"


async def test_more_ids_than_the_contract_has_room_for_are_refused(shelf: Shelf) -> None:
    assert (await check(shelf, 1, *[POINT] * LARGEST_CHECK)).gone == (POINT,) * LARGEST_CHECK
    with pytest.raises(InvalidInput) as refused:
        await check(shelf, 1, *[POINT] * (LARGEST_CHECK + 1))
    assert refused.value.field == "point_ids"
