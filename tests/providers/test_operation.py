"""What is told of a call to a model: its model, tokens, time and end, and nothing that was said."""

import asyncio
from collections.abc import Iterator

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from capacity import Workload
from providers import failures, operation
from providers.chat import ChatClient
from tests.measured import values
from tests.providers.asking import INPUT, MESSAGES, TEXT, ask
from tests.scripted_provider import replies
from tests.scripted_provider.server import ScriptedProvider

SAID = {
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": "openai",
    "gen_ai.request.model": "model-a",
}
TOKENS, DURATION = "gen_ai.client.token.usage", "gen_ai.client.operation.duration"


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(operation, "_tracer", provider.get_tracer("test"))
    yield exporter
    provider.shutdown()


def only(spans: InMemorySpanExporter) -> ReadableSpan:
    (span,) = spans.get_finished_spans()
    return span


async def test_a_call_tells_its_model_its_tokens_and_its_time(
    chat: ChatClient, provider: ScriptedProvider, spans: InMemorySpanExporter
) -> None:
    values()
    before = {
        kind: values(**{**SAID, "gen_ai.token.type": kind}).get(TOKENS, 0)
        for kind in ("input", "output")
    }
    provider.script(replies.answer(TEXT))
    await ask(chat)
    span = only(spans)
    usage = {"gen_ai.usage.input_tokens": 40, "gen_ai.usage.output_tokens": 12}
    assert (span.name, dict(span.attributes or {})) == ("chat model-a", {**SAID, **usage})
    assert span.status.status_code is StatusCode.UNSET
    for kind, tokens in (("input", 40), ("output", 12)):
        told = values(**{**SAID, "gen_ai.token.type": kind})
        assert told[TOKENS] - before[kind] == tokens
    assert values(**SAID)[DURATION] > 0


async def test_a_call_that_fails_tells_why_in_our_words(
    chat: ChatClient, provider: ScriptedProvider, spans: InMemorySpanExporter
) -> None:
    values()
    provider.script(replies.refused(500))
    with pytest.raises(failures.ProviderUnavailable) as failed:
        await ask(chat)
    span = only(spans)
    assert dict(span.attributes or {}) == {**SAID, "error.type": failed.value.reason}
    assert (span.status.status_code, span.status.description) == (
        StatusCode.ERROR,
        failed.value.reason,
    )
    assert not span.events
    assert values(**{**SAID, "error.type": failed.value.reason})[DURATION] > 0


async def test_a_reader_that_is_cancelled_is_no_error_of_the_model(
    chat: ChatClient, provider: ScriptedProvider, spans: InMemorySpanExporter
) -> None:
    driven = replies.Driven()
    provider.script(driven)
    driven.send(replies.chunk("one "))
    heard = asyncio.Event()

    async def read() -> None:
        async with chat.stream(
            MESSAGES, input_tokens=INPUT, workload=Workload.INTERACTIVE
        ) as reply:
            async for _ in reply:
                heard.set()

    reading = asyncio.create_task(read())
    await heard.wait()
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    span = only(spans)
    assert dict(span.attributes or {}) == {**SAID, "error.type": "cancelled"}
    assert span.status.status_code is StatusCode.UNSET
