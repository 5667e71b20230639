"""Queued through every face, answered by the worker, seen and ended by who asked alone."""

import asyncio
import json
from uuid import uuid4

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message

from chassis import identity
from chassis.errors import InvalidInput, Unavailable
from chassis.identity import AccessLevel
from sluice.answer.v1 import answer_pb2
from sluice.evidence.v1 import evidence_pb2
from sluice.retrieve.v1 import retrieve_pb2
from tests.gateway.house import (
    QUESTION,
    WRITTEN,
    House,
    bearer,
    named,
    raising,
    returning,
    token,
    until,
)
from tests.gateway.jobs.conftest import Shop
from tests.gateway.jobs.shop import ENDED, becomes, cancel, look, queue, state_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

DOWN = Unavailable("down", reason="DOWN")
NOBODYS = "0" * 32


def of(subject: str, tenant: str = "acme") -> dict[str, str]:
    return {"Authorization": f"Bearer {token(subject, tenant)}"}


def as_(subject: str) -> tuple[tuple[str, str], ...]:
    return (("authorization", f"Bearer {token(subject)}"),)


async def test_a_queued_question_is_answered_like_any_other_as_batch_work(shop: Shop) -> None:
    house = shop.house
    response = await house.ask(Prefer="respond-async")
    queued = response.json()
    assert (response.status_code, response.headers["preference-applied"]) == (202, "respond-async")
    assert (queued["mode"], queued["reason"], queued["text"]) == ("QUEUED", "REQUESTED", "")
    job = await becomes(house, queued["job_id"], *ENDED)
    assert (job["state"], job["attempts"], job["reason"]) == ("done", 1, None)
    asked = [stage.seen[-1].request for stage in (house.retrieve, house.generate)]
    assert [one.workload for one in asked] == 2 * [evidence_pb2.WORKLOAD_BATCH]
    caller = house.retrieve.seen[-1].caller
    assert (caller.subject, caller.tenant, caller.level) == ("ana", "acme", AccessLevel.TEAM)
    now = (await house.ask()).json()
    same = ("mode", "text", "citations", "sources", "score_space", "epoch", "instructions_version")
    assert {name: job["answer"][name] for name in same} == {name: now[name] for name in same}


async def test_one_key_is_one_job_and_another_question_under_it_is_refused(shop: Shop) -> None:
    house, key = shop.house, f"k-{uuid4()}"
    first = await queue(house, QUESTION, Idempotency_Key=key)
    again = await asyncio.gather(
        *(queue(house, f" {QUESTION} ", Idempotency_Key=key) for _ in range(5))
    )
    assert set(again) == {first}
    other = await house.ask({"question": "why?"}, Prefer="respond-async", Idempotency_Key=key)
    assert (other.status_code, other.json()["reason"]) == (409, "KEY_IN_USE")
    sent = {**of("bo"), **named({"Prefer": "respond-async", "Idempotency_Key": key})}
    bos = await house.http.post("/v1/answers", json={"question": "why?"}, headers=sent)
    assert bos.status_code == 202
    assert bos.json()["job_id"] != first
    await becomes(house, first, "done")
    assert await queue(house, QUESTION, Idempotency_Key=key) == first


async def test_of_one_key_at_once_comes_one_job(shop: Shop) -> None:
    key = f"k-{uuid4()}"
    jobs = await asyncio.gather(
        *(queue(shop.house, QUESTION, Idempotency_Key=key) for _ in range(20))
    )
    assert len(set(jobs)) == 1


@pytest.mark.parametrize("verb", ["GET", "DELETE"])
async def test_to_anybody_else_there_is_no_such_job(shop: Shop, verb: str) -> None:
    house = shop.house
    release = house.generate.hold()
    job_id = await queue(house, QUESTION)
    said = set()
    for headers, asked in (
        (of("bo"), job_id),
        (of("ana", "globex"), job_id),
        (of("ana"), NOBODYS),
        (of("ana"), "x" * 300),
        (of("ana"), "*"),
    ):
        response = await house.http.request(verb, f"/v1/jobs/{asked}", headers=headers)
        problem = response.json()
        said.add((response.status_code, problem["reason"], problem["detail"]))
    assert said == {(404, "NO_SUCH_JOB", "there is no such job")}
    assert (await house.http.request(verb, f"/v1/jobs/{job_id}")).status_code == 401
    release.set()
    assert (await becomes(house, job_id, *ENDED))["state"] == "done"


async def test_a_cancelled_job_ends_at_once_and_so_does_the_work_for_it(shop: Shop) -> None:
    house = shop.house
    house.generate.hold()
    job_id = await queue(house, QUESTION)
    await house.generate.reached()
    assert await state_of(house, job_id) == "running"
    assert (await cancel(house, job_id)).json()["state"] == "cancelled"
    async with asyncio.timeout(10):
        await house.generate.cancelled.wait()
    assert (await cancel(house, job_id)).json()["state"] == "cancelled"
    assert (await look(house, job_id)).json()["answer"] is None


async def test_what_has_ended_is_not_cancelled(shop: Shop) -> None:
    job_id = await queue(shop.house, QUESTION)
    done = await becomes(shop.house, job_id, "done")
    assert (await cancel(shop.house, job_id)).json() == {**done, "answer": done["answer"]}


async def test_a_job_takes_the_place_of_an_earlier_one(shop: Shop) -> None:
    house = shop.house
    release = house.generate.hold()
    first = await queue(house, QUESTION)
    body = {"question": "And when?", "supersedes": first}
    second = (await house.ask(body, Prefer="respond-async")).json()["job_id"]
    found = (await look(house, first)).json()
    assert (found["state"], found["superseded_by"]) == ("superseded", second)
    release.set()
    assert (await becomes(house, second, *ENDED))["state"] == "done"
    lost = await house.ask({**body, "supersedes": NOBODYS}, Prefer="respond-async")
    assert (lost.status_code, lost.json()["reason"]) == (404, "NO_SUCH_JOB")
    for headers, sent in (({}, first), ({"Prefer": "respond-async"}, "no id")):
        wrong = await house.ask({**body, "supersedes": sent}, **headers)
        assert (wrong.status_code, wrong.json()["field"]) == (400, "supersedes")


async def test_an_outage_is_waited_out(shop: Shop) -> None:
    house, calls = shop.house, 0

    async def twice_down(request: Message) -> Message:
        nonlocal calls
        calls += 1
        if calls <= 2:
            raise DOWN
        return WRITTEN

    house.generate.behaviour = twice_down
    job = await becomes(house, await queue(house, QUESTION), *ENDED, seconds=20)
    assert (job["state"], job["attempts"], job["answer"]["text"]) == ("done", 3, WRITTEN.text)


async def test_attempts_are_bounded_and_the_passages_are_shown_instead(shop: Shop) -> None:
    house = shop.house
    house.generate.behaviour = raising(DOWN)
    job = await becomes(house, await queue(house, QUESTION), *ENDED, seconds=20)
    assert (job["state"], job["attempts"], job["reason"]) == ("failed", 3, "MODEL_UNAVAILABLE")
    assert (job["answer"]["mode"], len(job["answer"]["sources"])) == ("UNAVAILABLE", 2)


async def test_what_no_attempt_can_mend_ends_the_job_at_once(shop: Shop) -> None:
    shop.house.generate.behaviour = raising(InvalidInput("secret words", field="sources"))
    job = await becomes(shop.house, await queue(shop.house, QUESTION), *ENDED)
    assert (job["state"], job["attempts"], job["reason"]) == ("failed", 1, "INTERNAL")
    assert "secret" not in json.dumps(job)


async def test_what_may_no_longer_be_read_is_not_shown_whoever_could_read_it_then(
    shop: Shop,
) -> None:
    house = shop.house
    job_id = await queue(house, QUESTION)
    assert (await becomes(house, job_id, "done"))["answer"]["text"]
    gone = retrieve_pb2.CheckPassagesResponse(gone=["00000000-0000-0000-0000-000000000001"])
    house.retrieve.checked.clear()

    async def checked(request: Message) -> Message:
        lowered = identity.current().level is AccessLevel.PUBLIC
        return gone if lowered else retrieve_pb2.CheckPassagesResponse()

    house.retrieve.checking = checked
    assert (await look(house, job_id)).json()["answer"]["text"]
    lowered = (await look(house, job_id, bearer(level=AccessLevel.PUBLIC))).json()
    answer = lowered["answer"]
    assert (lowered["state"], answer["mode"]) == ("done", "UNAVAILABLE")
    assert (answer["text"], answer["citations"], answer["sources"]) == ("", [], [])
    # An unchanged epoch says nothing of rights.
    assert [one.epoch for one in house.retrieve.checked] == [0, 0]
    house.retrieve.checking = raising(DOWN)
    unconfirmed = (await look(house, job_id)).json()["answer"]
    assert (unconfirmed["text"], unconfirmed["sources"]) == ("", [])
    house.retrieve.checking = returning(retrieve_pb2.CheckPassagesResponse())
    assert (await look(house, job_id)).json()["answer"]["text"]


async def test_rights_that_were_lowered_meanwhile_are_those_it_is_answered_with(
    shop: Shop,
) -> None:
    house = shop.house
    house.generate.behaviour = raising(DOWN)
    job_id = await queue(house, QUESTION)
    await house.generate.reached()
    await look(house, job_id, bearer(level=AccessLevel.PUBLIC))
    house.generate.behaviour = house.generate.normal
    assert (await becomes_by(house, job_id))["state"] == "done"
    levels = [seen.caller.level for seen in house.retrieve.seen]
    assert (levels[0], levels[-1]) == (AccessLevel.TEAM, AccessLevel.PUBLIC)


async def becomes_by(house: House, job_id: str) -> dict[str, object]:
    """The job once it has ended, looked at with few rights only."""
    few = bearer(level=AccessLevel.PUBLIC)

    async def ended() -> bool:
        return (await look(house, job_id, few)).json()["state"] in ENDED

    await until(ended)
    found: dict[str, object] = (await look(house, job_id, few)).json()
    return found


async def test_with_a_wait_only_what_cannot_be_answered_in_it_is_queued(shop: Shop) -> None:
    house, prefer = shop.house, "respond-async, wait=5"
    answered = await house.ask(Prefer=prefer)
    assert (answered.status_code, answered.json()["text"]) == (200, WRITTEN.text)
    assert "location" not in answered.headers
    house.generate.behaviour = raising(DOWN)
    queued = await house.ask(Prefer=prefer)
    found = queued.json()
    assert (queued.status_code, found["reason"]) == (202, "MODEL_UNAVAILABLE")
    house.generate.reset()
    assert (await becomes(house, found["job_id"], *ENDED, seconds=20))["state"] == "done"


async def test_where_there_is_no_room_jobs_are_accepted_seen_and_cancelled(shop: Shop) -> None:
    house = shop.house
    release = house.assemble.hold()
    asking = [asyncio.create_task(house.ask()) for _ in range(3)]

    async def full() -> bool:
        return len(house.assemble.seen) == len(asking)

    await until(full)
    assert (await house.ask()).json()["reason"] == "NO_ROOM"
    tried = (await house.ask(Prefer="respond-async, wait=1")).json()
    assert (tried["mode"], tried["reason"]) == ("QUEUED", "CAPACITY")
    job_id = await queue(house, QUESTION)
    assert (await look(house, job_id)).status_code == 200
    assert (await cancel(house, job_id)).json()["state"] == "cancelled"
    release.set()
    assert {one.status_code for one in await asyncio.gather(*asking)} == {200}
    await becomes(house, tried["job_id"], "done")


async def test_a_stream_ends_with_where_the_job_is_and_shows_no_half_answer(shop: Shop) -> None:
    house = shop.house
    (told,) = await house.hear(Prefer="respond-async")
    assert (told.name, told.content["mode"]) == ("answer", "QUEUED")
    await becomes(house, told.content["job_id"], "done")
    house.generate.behaviour = raising(DOWN)
    events = await house.hear(Prefer="respond-async, wait=5")
    last = events[-1].content
    assert [event.name for event in events].count("answer") == 1
    assert (last["mode"], last["reason"]) == ("QUEUED", "MODEL_UNAVAILABLE")
    await cancel(house, last["job_id"])


async def test_internal_services_queue_look_and_cancel_too(shop: Shop) -> None:
    answers = shop.house.answers
    deferral = answer_pb2.Deferral(idempotency_key=f"k-{uuid4()}")
    request = answer_pb2.AskRequest(question=QUESTION, deferral=deferral)
    queued = (await answers.Ask(request, metadata=as_("ana"))).outcome.queued
    assert (await answers.Ask(request, metadata=as_("ana"))).outcome.queued == queued
    await becomes(shop.house, queued.job_id, "done")
    asked = answer_pb2.GetJobRequest(job_id=queued.job_id)
    job = (await answers.GetJob(asked, metadata=as_("ana"))).job
    assert (job.state, job.attempts) == (answer_pb2.JOB_STATE_DONE, 1)
    assert job.answer.text == WRITTEN.text
    assert job.expire_time.seconds - job.accept_time.seconds == 3_600
    ended = await answers.CancelJob(
        answer_pb2.CancelJobRequest(job_id=queued.job_id), metadata=as_("ana")
    )
    assert ended.job == job
    for who, one in (("bo", asked), ("ana", answer_pb2.GetJobRequest(job_id="nothing"))):
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await answers.GetJob(one, metadata=as_(who))
        assert refused.value.code() is grpc.StatusCode.NOT_FOUND
    waiting = answer_pb2.AskRequest(
        question=QUESTION, deferral=answer_pb2.Deferral(wait=Duration(seconds=5))
    )
    assert (await answers.Ask(waiting, metadata=as_("ana"))).text == WRITTEN.text


async def test_chat_front_ends_are_told_where_the_answer_will_be(shop: Shop) -> None:
    body = {"model": "sluice", "messages": [{"role": "user", "content": QUESTION}]}
    headers = {**bearer(), "Prefer": "respond-async"}
    response = await shop.house.http.post("/v1/chat/completions", json=body, headers=headers)
    completion = response.json()
    job_id = completion["sluice"]["job_id"]
    assert (response.status_code, completion["sluice"]["mode"]) == (200, "QUEUED")
    assert response.headers["location"] == f"/v1/jobs/{job_id}"
    said = completion["choices"][0]["message"]["content"]
    assert said == f"Accepted as a job. Its answer will be at /v1/jobs/{job_id}"
    await becomes(shop.house, job_id, "done")


async def test_agents_queue_a_question_and_fetch_its_answer(shop: Shop) -> None:
    async def call(name: str, **arguments: object) -> dict[str, object]:
        message = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": name, "arguments": arguments},
        }
        accept = "application/json, text/event-stream"
        response = await shop.house.http.post(
            "/mcp", json=message, headers={**bearer(), "Accept": accept}
        )
        (data,) = [line for line in response.text.splitlines() if line.startswith("data: {")]
        found: dict[str, object] = json.loads(data.removeprefix("data: "))["result"]
        return found

    queued = await call("answer", question=QUESTION, later=True)
    job_id = queued["structuredContent"]["job_id"]  # type: ignore[index] # JSON
    assert job_id in json.dumps(queued["content"])
    await becomes(shop.house, job_id, "done")
    found = await call("job", job_id=job_id)
    assert found["structuredContent"]["state"] == "done"  # type: ignore[index] # JSON
    assert WRITTEN.text in json.dumps(found["content"])
    missing = await call("job", job_id=NOBODYS)
    assert missing["isError"]


@pytest.mark.parametrize("key", ["x" * 256, "two words", "ü"])
async def test_a_key_that_is_none_is_refused(shop: Shop, key: str) -> None:
    sent = {**bearer(), "Prefer": "respond-async", "Idempotency-Key": key}
    headers = [(name.encode(), value.encode()) for name, value in sent.items()]
    response = await shop.house.http.post(
        "/v1/answers", json={"question": QUESTION}, headers=headers
    )
    assert (response.status_code, response.json()["field"]) == (400, "Idempotency-Key")


@pytest.mark.parametrize("prefer", ["", "return=minimal", "respond-asynchronously", "wait=5"])
async def test_who_does_not_ask_for_a_job_gets_the_answer(shop: Shop, prefer: str) -> None:
    response = await shop.house.ask(Prefer=prefer, Idempotency_Key="k")
    assert (response.status_code, response.json()["text"]) == (200, WRITTEN.text)


async def test_a_job_whose_time_is_over_has_expired(shop: Shop) -> None:
    house = shop.house
    house.generate.hold()
    job_id = await queue(house, QUESTION)
    await house.generate.reached()
    with shop.vault.client() as client:
        client.hset(f"sluice:{{jobs}}:job:{job_id}", "expires", 1)
    assert (await look(house, job_id)).json()["state"] == "expired"
    async with asyncio.timeout(10):
        await house.generate.cancelled.wait()


async def test_questions_and_answers_are_in_no_log(shop: Shop) -> None:
    marked = "Where is the violet zebra kept?"
    await becomes(shop.house, await queue(shop.house, marked), "done")
    logs = [path.read_text() for path in shop.house.log.parent.glob("*.log")]
    assert len(logs) == 2
    assert not any(word in log for log in logs for word in ("violet zebra", "Rotate it"))
