"""What the process is made of, as its settings say."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from capacity import SharedBucket, Workload
from services.generate.__main__ import extractive
from services.generate.generated import generated
from services.generate.mode import Mode
from services.generate.qualification import SCHEMA_VERSION, fingerprint
from services.generate.result import Switch
from services.generate.settings import GenerateSettings
from services.generate.verdict import Acceptance, Generated
from tests.generate.asking import MODEL, TASK, reply
from tests.scripted_provider import replies
from tests.scripted_provider.server import ScriptedProvider

LISTING = """
pools:
  backup:
    requests_per_minute: 6000
    tokens_per_minute: 600000
    in_flight: 4
    max_reservation: 20000
candidates:
  - id: backup
    pool: backup
    base_url: {url}
    model: model-b
    structured_output: true
    qualification: backup.json
"""


@pytest.fixture
def told(
    redis_url: str, provider: ScriptedProvider, free_port: Callable[[], int], tmp_path: Path
) -> dict[str, Any]:
    """Settings with a first candidate that nobody reaches, and a second one."""
    listing = tmp_path / "candidates.yaml"
    listing.write_text(LISTING.format(url=provider.base_url))
    return {
        "env": "development",
        "answer_mode": "generated",
        "answer_base_url": f"http://127.0.0.1:{free_port()}/v1",
        "answer_model": "model-a",
        "answer_candidates": listing,
        "redis_url": redis_url,
        "capacity_decision_seconds": 2,
    }


def qualify(settings: GenerateSettings, **changed: object) -> None:
    """Write the report that the second candidate is held to."""
    (listed,) = settings.listed()
    report = {
        "format": 1,
        "report_id": "gold-1",
        "fingerprint": fingerprint(listed.endpoint),
        "model": "model-b",
        "host": "127.0.0.1",
        "served_model": MODEL,
        "instructions_versions": ["en-1"],
        "schema_version": SCHEMA_VERSION,
        "validation_version": "4:0.5",
        "levels": ["restricted"],
        "mode": "full",
        "passed": True,
        "evaluated_at": "2026-11-30T08:00:00Z",
    }
    listed.report.write_text(json.dumps({**report, **changed}))


@asynccontextmanager
async def opened(settings: GenerateSettings) -> AsyncIterator[Mode]:
    """The process's way to answer, when its pools admit calls."""
    mode = generated(settings)
    limits = {"answers": settings.answer_limits()}
    limits |= {each.endpoint.pool: each.endpoint.limits for each in settings.listed()}
    await asyncio.gather(*(_admits(settings.bucket(pool, limits[pool])) for pool in limits))
    yield mode
    for close in mode.close:
        await close()


async def _admits(bucket: SharedBucket) -> None:
    async with bucket.acquire(1, Workload.INTERACTIVE, time.monotonic() + 15) as probe:
        probe.not_begun()
    await bucket.close()


async def test_a_listed_candidate_answers_where_the_first_cannot_be_reached(
    told: dict[str, Any], provider: ScriptedProvider
) -> None:
    settings = GenerateSettings(**told)
    qualify(settings)
    async with opened(settings) as mode:
        provider.script(replies.answer(reply()))
        result = await mode.answering.answer(TASK)
        assert result.verdict == Generated(Acceptance.ACCEPTED)
        assert result.provenance.candidate == "backup"
        assert result.provenance.switch is Switch.UNAVAILABLE
        assert result.provenance.is_structured
        assert result.spent.attempts == 3
        assert provider.arrivals[0].body["model"] == "model-b"
        assert mode.needs_messages
        assert [each.name for each in mode.dependencies] == [
            "pool-answers",
            "pool-backup",
            "provider-primary",
            "provider-backup",
        ]

        provider.script(replies.answer(reply()))
        await mode.answering.answer(replace(TASK, instructions_version="en-2"))
        assert len(provider.arrivals) == 1


async def test_a_candidate_whose_report_does_not_hold_is_not_there_and_the_log_says_why(
    told: dict[str, Any],
) -> None:
    settings = GenerateSettings(**told)
    qualify(settings, passed=False)
    with capture_logs() as logs:
        mode = generated(settings)
    assert [each.name for each in mode.dependencies] == ["pool-answers", "provider-primary"]
    assert logs == [
        {
            "event": "candidate_disabled",
            "log_level": "error",
            "candidate": "backup",
            "reason": "it did not pass gold-1",
        }
    ]
    for close in mode.close:
        await close()


async def test_quoting_depends_on_nothing_and_needs_no_messages() -> None:
    mode = extractive(GenerateSettings(env="development"))
    assert (mode.needs_messages, list(mode.dependencies), list(mode.close)) == (False, [], [])
