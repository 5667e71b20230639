"""Each way a question can end, over HTTP and gRPC, against a real gateway and real stages."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest
import pytest_asyncio
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo
from google.rpc.status_pb2 import Status

from chassis import errors
from chassis.identity import AccessLevel
from gateway.identity import development_token
from sluice.answer.v1 import answer_pb2, outcome_pb2
from sluice.assemble.v1 import assemble_pb2
from sluice.evidence.v1 import evidence_pb2
from sluice.generate.v1 import generate_pb2
from sluice.retrieve.v1 import retrieve_pb2
from tests.gateway.house import (
    ALL,
    FLOW,
    FOUND,
    PROMPT,
    QUESTION,
    WRITTEN,
    House,
    gateway,
    hanging,
    passage,
    raising,
    returning,
    served,
    token,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def ask_grpc(
    house: House, request: answer_pb2.AskRequest | None = None, limit: float = 10
) -> answer_pb2.AskResponse:
    sent = request or answer_pb2.AskRequest(question=QUESTION)
    metadata = (("authorization", f"Bearer {token()}"),)
    return await house.answers.Ask(sent, timeout=limit, metadata=metadata)


def rich(failure: grpc.aio.AioRpcError) -> Status:
    trailing = dict(failure.trailing_metadata() or ())
    return Status.FromString(trailing["grpc-status-details-bin"])


async def test_an_answer_comes_with_its_cited_sources_and_times(house: House) -> None:
    response = await house.ask()
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"
    assert response.headers["cache-control"] == "no-store"
    answer = response.json()
    assert (answer["mode"], answer["reason"], answer["acceptance"]) == (
        "EXTRACTIVE",
        "NONE",
        "ACCEPTED",
    )
    assert answer["text"] == "Rotate it on day 1. [S1]"
    assert answer["citations"] == [{"label": "S1", "start": 0, "end": 24, "support": 1.0}]
    assert [source["label"] for source in answer["sources"]] == ["S1"]
    assert answer["sources"][0]["passages"] == [passage(1).point_id]
    assert answer["sources"][0]["access_level"] == "team"
    assert answer["usage"] == {
        "input_tokens": 42,
        "output_tokens": None,
        "attempts": 1,
        "model": "tiny",
    }
    assert all(0 < answer["timings"][name] < 5_000 for name in ("retrieve", "assemble", "generate"))
    assert answer["timings"]["total"] >= answer["timings"]["generate"]
    assert (answer["instructions_version"], answer["score_space"], answer["epoch"]) == (
        "en-1",
        "COSINE",
        7,
    )


async def test_grpc_gives_the_same_answer(house: House) -> None:
    answer = await ask_grpc(house)
    assert answer.outcome == WRITTEN.outcome
    assert (answer.text, list(answer.citations)) == (WRITTEN.text, list(WRITTEN.citations))
    assert list(answer.sources) == [PROMPT.sources[0]]
    assert answer.usage == WRITTEN.usage
    assert [timing.stage for timing in answer.timings] == ["retrieve", "assemble", "generate"]
    assert all(0 < timing.elapsed.ToMicroseconds() < 5_000_000 for timing in answer.timings)
    assert (answer.instructions_version, answer.score_space, answer.epoch) == (
        "en-1",
        evidence_pb2.SCORE_SPACE_COSINE,
        7,
    )


async def test_the_stages_get_the_question_and_hand_the_evidence_on_unchanged(house: House) -> None:
    body = {
        "question": "  How \n do we\trotate it? ",
        "locale": "pt",
        "filters": {
            "document_types": ["runbook"],
            "document_ids": ["a", "b"],
            "areas": ["data"],
            "publication_states": ["draft", "published"],
        },
    }
    assert (await house.ask(body)).status_code == 200
    text = "How do we rotate it?"
    asked = house.retrieve.seen[0].request
    assert asked == retrieve_pb2.RetrieveRequest(
        question=text,
        filters=retrieve_pb2.Filters(
            document_types=["runbook"],
            document_ids=["a", "b"],
            areas=["data"],
            publication_states=[
                evidence_pb2.PUBLICATION_STATE_DRAFT,
                evidence_pb2.PUBLICATION_STATE_PUBLISHED,
            ],
        ),
        workload=evidence_pb2.WORKLOAD_INTERACTIVE,
    )
    assert house.assemble.seen[0].request == assemble_pb2.AssembleRequest(
        question=text, candidates=FOUND.passages, locale="pt"
    )
    assert house.generate.seen[0].request == generate_pb2.GenerateRequest(
        question=text,
        messages=PROMPT.messages,
        sources=PROMPT.sources,
        input_tokens=42,
        instructions_version="en-1",
        score_space=evidence_pb2.SCORE_SPACE_COSINE,
        workload=evidence_pb2.WORKLOAD_INTERACTIVE,
    )


async def test_each_stage_sees_the_caller_in_a_token_of_its_own(house: House) -> None:
    outside = development_token("bo", "globex", AccessLevel.TEAM, groups=["sre"], roles=["editor"])
    await house.ask(Authorization=f"Bearer {outside}")
    callers = [house.stages[name].seen[0].caller for name in FLOW]
    assert callers[0] == callers[1] == callers[2]
    caller = callers[0]
    assert (caller.subject, caller.tenant, caller.level.label) == ("bo", "globex", "team")
    assert (caller.groups, caller.roles) == (frozenset({"sre"}), frozenset({"editor"}))
    tokens = {house.stages[name].seen[0].metadata["authorization"] for name in FLOW}
    assert len(tokens) == 3
    assert f"Bearer {outside}" not in tokens


# Each row of the outcome table that generate can send: message, mode, reason, acceptance.
Sent = outcome_pb2.Outcome
ROWS = [
    (
        Sent(generated=outcome_pb2.Generated(acceptance=outcome_pb2.ACCEPTANCE_ACCEPTED)),
        ("GENERATED", "NONE", "ACCEPTED"),
    ),
    (
        Sent(generated=outcome_pb2.Generated(acceptance=outcome_pb2.ACCEPTANCE_REVIEW_REQUIRED)),
        ("GENERATED", "NONE", "REVIEW_REQUIRED"),
    ),
    *(
        (
            Sent(extractive=outcome_pb2.Extractive(reason=number)),
            ("EXTRACTIVE", name.removeprefix("EXTRACTIVE_REASON_"), "ACCEPTED"),
        )
        for name, number in outcome_pb2.ExtractiveReason.items()
        if number
    ),
    *(
        (
            Sent(abstained=outcome_pb2.Abstained(reason=number)),
            ("ABSTAINED", name.removeprefix("ABSTAINED_REASON_"), None),
        )
        for name, number in outcome_pb2.AbstainedReason.items()
        if number
    ),
    *(
        (
            Sent(unavailable=outcome_pb2.Unavailable(reason=number)),
            ("UNAVAILABLE", name.removeprefix("UNAVAILABLE_REASON_"), None),
        )
        for name, number in outcome_pb2.UnavailableReason.items()
        if number
    ),
]


@pytest.mark.parametrize(
    ("sent", "expected"),
    ROWS,
    ids=lambda row: "-".join(map(str, row)) if isinstance(row, tuple) else "",
)
async def test_every_outcome_of_generate_goes_out_as_it_is(
    house: House, sent: outcome_pb2.Outcome, expected: tuple[str, str, str | None]
) -> None:
    house.generate.behaviour = returning(generate_pb2.GenerateResponse(outcome=sent))
    response = await house.ask()
    answer = response.json()
    assert response.status_code == 200
    assert (answer["mode"], answer["reason"], answer["acceptance"]) == expected
    assert (await ask_grpc(house)).outcome == sent


async def test_sources_stand_in_for_an_answer_but_not_for_an_abstention(house: House) -> None:
    shown = {}
    for sent, (mode, _, _) in ROWS:
        house.generate.behaviour = returning(generate_pb2.GenerateResponse(outcome=sent))
        shown[mode] = [source["label"] for source in (await house.ask()).json()["sources"]]
    assert shown == {
        "GENERATED": [],
        "EXTRACTIVE": [],
        "ABSTAINED": [],
        "UNAVAILABLE": ["S1", "S2"],
    }


async def test_nothing_found_is_an_abstention_and_asks_no_further_stage(house: House) -> None:
    house.retrieve.behaviour = returning(retrieve_pb2.RetrieveResponse(epoch=7))
    answer = (await house.ask()).json()
    assert (answer["mode"], answer["reason"]) == ("ABSTAINED", "NOTHING_FOUND")
    assert (house.assemble.seen, house.generate.seen) == ([], [])
    assert answer["timings"]["assemble"] is None
    assert answer["epoch"] == 7


async def test_nothing_admitted_is_an_abstention_and_generate_is_not_asked(house: House) -> None:
    house.assemble.behaviour = returning(assemble_pb2.AssembleResponse(instructions_version="en-1"))
    answer = (await house.ask()).json()
    assert (answer["mode"], answer["reason"]) == ("ABSTAINED", "NOTHING_FOUND")
    assert house.generate.seen == []
    assert answer["instructions_version"] == "en-1"


OUTAGES = [
    ("retrieve", errors.Unavailable("index down, driver text"), "RETRIEVAL_UNAVAILABLE", []),
    ("retrieve", errors.ContractMismatch("other profile"), "RETRIEVAL_UNAVAILABLE", []),
    ("retrieve", errors.Exhausted("pool of azure-1 full", retry_after=3), "CAPACITY", []),
    ("assemble", errors.Unavailable("driver text"), "MODEL_UNAVAILABLE", ["S1", "S2"]),
    ("generate", errors.Unavailable("azure-1 says no"), "MODEL_UNAVAILABLE", ["S1", "S2"]),
    ("generate", errors.Exhausted("pool of azure-1 full"), "CAPACITY", ["S1", "S2"]),
    ("generate", errors.ContractMismatch("other"), "MODEL_UNAVAILABLE", ["S1", "S2"]),
]


@pytest.mark.parametrize(("name", "error", "reason", "labels"), OUTAGES)
async def test_an_outage_is_an_outcome_with_the_passages_there_are(
    house: House, name: str, error: errors.SluiceError, reason: str, labels: list[str]
) -> None:
    house.stages[name].behaviour = raising(error)
    response = await house.ask()
    answer = response.json()
    assert response.status_code == 200
    assert (answer["mode"], answer["reason"], answer["acceptance"]) == ("UNAVAILABLE", reason, None)
    assert [source["label"] for source in answer["sources"]] == labels
    assert (answer["text"], answer["citations"]) == ("", [])
    assert answer["timings"][name] > 0
    assert error.message not in response.text
    over_grpc = await ask_grpc(house)
    assert over_grpc.outcome.unavailable.reason == outcome_pb2.UnavailableReason.Value(
        f"UNAVAILABLE_REASON_{reason}"
    )


async def test_without_assemble_the_passages_themselves_are_the_sources(house: House) -> None:
    await house.assemble.stop()
    first, second = (await ask_grpc(house)).sources
    assert first.included_text == "Rotate it on day 1.\n\n| a | b |\n| 1 | 2 |"
    assert list(first.passages) == [passage(1)]
    assert (first.label, first.document_id, first.score) == ("S1", passage(1).document_id, 0.9)
    assert (second.label, second.suspected_injection) == ("S2", True)
    assert second.access_level == evidence_pb2.ACCESS_LEVEL_TEAM


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("retrieve", "RETRIEVAL_UNAVAILABLE"),
        ("assemble", "MODEL_UNAVAILABLE"),
        ("generate", "MODEL_UNAVAILABLE"),
    ],
)
async def test_a_stage_that_dies_in_the_middle_is_an_outcome_and_comes_back_by_itself(
    house: House, name: str, reason: str
) -> None:
    stage = house.stages[name]
    stage.behaviour = hanging
    asking = asyncio.create_task(house.ask())
    await stage.reached()
    await stage.stop()
    response = await asking
    assert (response.status_code, response.json()["reason"]) == (200, reason)

    stage.behaviour = stage.normal
    await stage.start()
    async with asyncio.timeout(5):
        while (await house.ask()).json()["mode"] != "EXTRACTIVE":
            pass


@pytest.mark.parametrize("name", ["retrieve", "assemble", "generate"])
async def test_time_that_runs_out_is_said_within_the_callers_deadline(
    house: House, name: str
) -> None:
    house.stages[name].behaviour = hanging
    answer = (await house.ask(Request_Timeout="0.5")).json()
    assert (answer["mode"], answer["reason"]) == ("UNAVAILABLE", "DEADLINE")
    assert answer["timings"]["total"] <= 500
    over_grpc = await ask_grpc(house, limit=0.5)
    assert over_grpc.outcome.unavailable.reason == outcome_pb2.UNAVAILABLE_REASON_DEADLINE


async def test_time_that_was_over_at_the_start_asks_no_stage(house: House) -> None:
    answer = (await house.ask(Request_Timeout="0.001")).json()
    assert (answer["mode"], answer["reason"]) == ("UNAVAILABLE", "DEADLINE")
    assert house.retrieve.seen == []


async def test_each_hop_has_less_time_than_the_one_before(house: House) -> None:
    slow = [(stage, stage.hold()) for stage in (house.retrieve, house.assemble)]
    asking = asyncio.create_task(house.ask(Request_Timeout="5"))
    for stage, release in slow:
        await stage.reached()
        asyncio.get_running_loop().call_later(0.05, release.set)
    await asking
    first, second, third = (house.stages[name].seen[0].remaining for name in FLOW)
    assert 4.9 > first > second > third > 0


async def test_no_caller_gets_more_time_than_the_gateway_grants(house: House) -> None:
    await house.ask(Request_Timeout="100000")
    await ask_grpc(house, limit=100_000)
    assert all(seen.remaining < 60 for seen in house.generate.seen)


@pytest_asyncio.fixture(loop_scope="module")
async def impatient(tmp_path: Path) -> AsyncIterator[House]:
    limits = {f"{name.upper()}_SECONDS": "0.2" for name in ALL}
    async with served(*ALL) as behind, gateway(behind, tmp_path / "log", limits) as house:
        yield house


async def test_a_stage_slower_than_its_own_limit_is_down_not_the_caller_late(
    impatient: House,
) -> None:
    found = {}
    for name in FLOW:
        stage = impatient.stages[name]
        stage.behaviour = hanging
        found[name] = (await impatient.ask()).json()["reason"]
        stage.reset()
    assert found == {
        "retrieve": "RETRIEVAL_UNAVAILABLE",
        "assemble": "MODEL_UNAVAILABLE",
        "generate": "MODEL_UNAVAILABLE",
    }


CALLERS_TO_MEND = [
    ("retrieve", errors.InvalidInput("no such area", field="filters.areas"), 400, "filters.areas"),
    ("assemble", errors.InvalidInput("9,000 of 3,328", field="question"), 400, "question"),
    ("assemble", errors.InvalidInput("no such locale", field="locale"), 400, "locale"),
    ("retrieve", errors.Forbidden("drafts need the role", reason="NO_ROLE"), 403, None),
]


@pytest.mark.parametrize(("name", "error", "status", "field"), CALLERS_TO_MEND)
async def test_what_the_caller_can_mend_passes_on_with_its_field(
    house: House, name: str, error: errors.SluiceError, status: int, field: str | None
) -> None:
    house.stages[name].behaviour = raising(error)
    response = await house.ask()
    problem = response.json()
    assert response.headers["content-type"] == "application/problem+json"
    assert (response.status_code, problem["status"]) == (status, status)
    assert (problem["detail"], problem["reason"]) == (error.message, error.reason)
    assert problem.get("field") == field
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await ask_grpc(house)
    details = rich(failure.value).details
    info, bad = ErrorInfo(), BadRequest()
    assert details[0].Unpack(info)
    assert (info.reason, info.domain) == (error.reason, "sluice")
    if field:
        assert details[1].Unpack(bad)
        assert bad.field_violations[0].field == field


OURS_TO_MEND = [
    ("retrieve", RuntimeError("secret driver text")),
    ("retrieve", errors.DataViolation("point 17 has no tenant")),
    ("retrieve", errors.Unauthenticated("the token does not hold")),
    ("retrieve", errors.InvalidInput("top_k is 1 to 100", field="top_k")),
    ("assemble", errors.InvalidInput("a block without text", field="candidates[0]")),
    ("generate", errors.NotFound("deployment azure-1")),
    ("generate", errors.Internal("secret")),
]


@pytest.mark.parametrize(("name", "error"), OURS_TO_MEND)
async def test_a_bug_of_ours_says_nothing_about_itself(
    house: House, name: str, error: Exception
) -> None:
    house.stages[name].behaviour = raising(error)
    response = await house.ask()
    assert response.status_code == 500
    problem = response.json()
    assert (problem["title"], problem["reason"]) == ("Internal Server Error", "INTERNAL")
    assert str(error) not in response.text
    assert name not in response.text
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await ask_grpc(house)
    assert failure.value.code() is grpc.StatusCode.INTERNAL
    assert failure.value.details() == problem["detail"]


async def test_an_outcome_outside_the_contract_is_a_bug(house: House) -> None:
    for outcome in (
        outcome_pb2.Outcome(),
        outcome_pb2.Outcome(generated=outcome_pb2.Generated()),
        outcome_pb2.Outcome(abstained=outcome_pb2.Abstained()),
    ):
        house.generate.behaviour = returning(generate_pb2.GenerateResponse(outcome=outcome))
        assert (await house.ask()).status_code == 500
