"""What vendors' own words become. The bodies have their vendors' shapes; the texts are ours."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from chassis.errors import SluiceError
from providers import failures
from providers.chat import ChatClient
from tests.providers.asking import ask
from tests.scripted_provider import replies
from tests.scripted_provider.server import Reply, ScriptedProvider


@dataclass(frozen=True)
class Row:
    vendor: str
    status: int
    body: object
    kind: type[SluiceError]
    reason: str
    headers: Mapping[str, str] = field(default_factory=dict)
    retry_after: float | None = None
    option: str | None = None


def openai(
    code: str | None, *, kind: str = "invalid_request_error", param: str | None = None
) -> object:
    error = {"message": "secret-detail", "type": kind, "param": param, "code": code}
    return {"error": error}


def azure(code: str, **more: object) -> object:
    return {"error": {"code": code, "message": "secret-detail", **more}}


def ollama(message: str, kind: str) -> object:
    error = {"message": f"{message} secret-detail", "type": kind, "param": None, "code": None}
    return {"error": error}


def vllm(message: str, kind: str, code: int, param: str | None = None) -> dict[str, object]:
    return {"message": f"{message} secret-detail", "type": kind, "param": param, "code": code}


def llama(message: str, kind: str, code: int, **more: object) -> dict[str, object]:
    return {"error": {"code": code, "message": f"{message} secret-detail", "type": kind, **more}}


FILTERED = {
    "param": "prompt",
    "type": None,
    "status": 400,
    "innererror": {
        "code": "ResponsibleAIPolicyViolation",
        "content_filter_result": {"violence": {"filtered": True, "severity": "medium"}},
    },
}
TOO_LONG = "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens"
CREDENTIALS, UNKNOWN, LENGTH = "PROVIDER_CREDENTIALS", "DEPLOYMENT_UNKNOWN", "CONTEXT_LENGTH"
UNSUPPORTED, UNAVAILABLE, THROTTLED = (
    "UNSUPPORTED_OPTION",
    "PROVIDER_UNAVAILABLE",
    "PROVIDER_THROTTLED",
)
Missing, Long = failures.Misconfigured, failures.ContextTooLong
Option, Away = failures.UnsupportedOption, failures.ProviderUnavailable

ROWS = [
    Row("openai", 401, openai("invalid_api_key"), Missing, CREDENTIALS),
    Row("openai", 403, openai(None, kind="request_forbidden"), Missing, CREDENTIALS),
    Row("openai", 403, openai("model_not_found"), Missing, UNKNOWN),
    Row("openai", 404, openai("model_not_found"), Missing, UNKNOWN),
    Row(
        "openai",
        429,
        openai("rate_limit_exceeded", kind="tokens"),
        failures.Throttled,
        THROTTLED,
        headers={"retry-after": "7"},
        retry_after=7,
    ),
    Row(
        "openai",
        429,
        openai("insufficient_quota", kind="insufficient_quota"),
        Missing,
        "PROVIDER_QUOTA",
    ),
    Row("openai", 400, openai("context_length_exceeded", param="messages"), Long, LENGTH),
    Row(
        "openai",
        400,
        openai("unsupported_parameter", param="max_tokens"),
        Option,
        UNSUPPORTED,
        option="max_tokens",
    ),
    Row(
        "openai",
        400,
        openai("unsupported_value", param="temperature"),
        Option,
        UNSUPPORTED,
        option="temperature",
    ),
    Row(
        "openai",
        400,
        openai(None, param="response_format"),
        Option,
        UNSUPPORTED,
        option="response_format",
    ),
    Row("openai", 400, openai("invalid_prompt"), failures.Refused, "REFUSED"),
    Row("openai", 400, openai(None, param="messages[0].role"), Missing, "PROVIDER_REJECTED"),
    Row("openai", 500, openai(None, kind="server_error"), Away, UNAVAILABLE),
    Row("openai", 503, openai(None, kind="server_error"), Away, UNAVAILABLE),
    Row("azure", 401, azure("401"), Missing, CREDENTIALS),
    Row("azure", 401, azure("PermissionDenied"), Missing, CREDENTIALS),
    Row("azure", 403, azure("AccessDenied"), Missing, CREDENTIALS),
    Row("azure", 404, azure("DeploymentNotFound"), Missing, UNKNOWN),
    Row("azure", 404, azure("404"), Missing, UNKNOWN),
    Row("azure", 400, azure("content_filter", **FILTERED), failures.Refused, "REFUSED"),
    Row("azure", 400, azure("400", **FILTERED), failures.Refused, "REFUSED"),
    Row("azure", 400, azure("context_length_exceeded", param="messages"), Long, LENGTH),
    Row(
        "azure",
        400,
        {"error": {"message": "Unrecognized request argument supplied: reasoning_effort"}},
        Option,
        UNSUPPORTED,
    ),
    Row(
        "azure",
        429,
        azure("429"),
        failures.Throttled,
        THROTTLED,
        headers={"retry-after-ms": "2500", "retry-after": "3"},
        retry_after=2.5,
    ),
    Row(
        "azure",
        429,
        azure("RateLimitReached"),
        failures.Throttled,
        THROTTLED,
        headers={"retry-after": "60"},
        retry_after=60,
    ),
    Row("azure", 408, azure("Timeout"), Away, UNAVAILABLE),
    Row("azure", 500, azure("InternalServerError"), Away, UNAVAILABLE),
    Row("ollama", 404, ollama("model 'a' not found", "not_found_error"), Missing, UNKNOWN),
    Row("ollama", 404, ollama("model 'a' not found", "api_error"), Missing, UNKNOWN),
    Row("ollama", 404, "404 page not found", Missing, UNKNOWN),
    Row(
        "ollama",
        400,
        ollama('"a" does not support thinking', "invalid_request_error"),
        Option,
        UNSUPPORTED,
    ),
    Row(
        "ollama",
        400,
        ollama("prompt too long; exceeded max context length by 4 tokens", "invalid_request_error"),
        Long,
        LENGTH,
    ),
    Row("ollama", 503, ollama("server busy, please try again.", "api_error"), Away, UNAVAILABLE),
    Row("ollama", 500, ollama("model needs more memory", "api_error"), Away, UNAVAILABLE),
    Row(
        "vllm",
        400,
        {"error": vllm("too long", "BadRequestError", 400, "input_tokens")},
        Long,
        LENGTH,
    ),
    Row("vllm", 400, {"error": vllm("large", "BadRequestError", 400, "max_tokens")}, Long, LENGTH),
    Row("vllm", 400, {"error": vllm(TOO_LONG, "BadRequestError", 400)}, Long, LENGTH),
    Row("vllm", 400, {"object": "error", **vllm(TOO_LONG, "BadRequestError", 400)}, Long, LENGTH),
    Row(
        "vllm",
        400,
        {"error": vllm("bad", "BadRequestError", 400, "temperature")},
        Option,
        UNSUPPORTED,
        option="temperature",
    ),
    Row("vllm", 400, {"error": vllm("?", "BadRequestError", 400)}, Missing, "PROVIDER_REJECTED"),
    Row("vllm", 401, {"error": "Unauthorized"}, Missing, CREDENTIALS),
    Row("vllm", 404, {"error": vllm("?", "NotFoundError", 404, "model")}, Missing, UNKNOWN),
    Row("vllm", 500, {"error": vllm("?", "InternalServerError", 500)}, Away, UNAVAILABLE),
    Row("vllm", 501, {"error": vllm("?", "NotImplementedError", 501)}, Option, UNSUPPORTED),
    Row("llama.cpp", 503, llama("Loading model", "unavailable_error", 503), Away, UNAVAILABLE),
    Row(
        "llama.cpp",
        400,
        llama("?", "exceed_context_size_error", 400, n_prompt_tokens=9412, n_ctx=8192),
        Long,
        LENGTH,
    ),
    Row("llama.cpp", 500, llama("?", "exceed_context_size_error", 500), Long, LENGTH),
    Row(
        "llama.cpp",
        500,
        llama("Context size has been exceeded.", "server_error", 500),
        Long,
        LENGTH,
    ),
    Row("llama.cpp", 501, llama("?", "not_supported_error", 501), Option, UNSUPPORTED),
    Row(
        "llama.cpp",
        401,
        llama("Invalid API Key", "authentication_error", 401),
        Missing,
        CREDENTIALS,
    ),
    Row("llama.cpp", 400, llama("?", "invalid_request_error", 400), Missing, "PROVIDER_REJECTED"),
    Row("proxy", 413, "<html>Request Entity Too Large</html>", Long, LENGTH),
    Row("proxy", 502, "<html>Bad Gateway</html>", Away, UNAVAILABLE),
    Row("proxy", 504, "", Away, UNAVAILABLE),
    Row("proxy", 429, "[]", failures.Throttled, THROTTLED),
    Row("proxy", 400, [], Missing, "PROVIDER_REJECTED"),
    Row("proxy", 400, {"error": {"code": {"a": 1}, "param": 7}}, Missing, "PROVIDER_REJECTED"),
]

# After 200, in a stream. The first of a pair has an `error` key, which the client raises for.
EVENTS = [
    ({"error": vllm("?", "InternalServerError", 500)}, Away, UNAVAILABLE),
    ({"object": "error", **vllm("?", "InternalServerError", 500)}, Away, UNAVAILABLE),
    (llama("Context size has been exceeded.", "server_error", 500), Long, LENGTH),
    ({"error": vllm(TOO_LONG, "BadRequestError", 400)}, Long, LENGTH),
    (vllm(TOO_LONG, "BadRequestError", 400), Long, LENGTH),
    (openai("rate_limit_exceeded", kind="tokens"), failures.Throttled, THROTTLED),
    ({"code": "rate_limit_exceeded", "message": "?"}, failures.Throttled, THROTTLED),
    (azure("429"), failures.Throttled, THROTTLED),
    (azure("content_filter", **FILTERED), failures.Refused, "REFUSED"),
    (openai("server_error"), Away, UNAVAILABLE),
    ({"error": "secret-detail"}, Away, UNAVAILABLE),
    ({"message": "secret-detail"}, Away, UNAVAILABLE),
]


async def failure(chat: ChatClient, provider: ScriptedProvider, reply: Reply) -> SluiceError:
    provider.script(reply)
    with pytest.raises(SluiceError) as caught:
        await ask(chat)
    assert provider.calls == 1
    return caught.value


@pytest.mark.parametrize(
    "row", ROWS, ids=[f"{row.vendor}-{row.status}-{row.reason}" for row in ROWS]
)
async def test_a_vendors_refusal_has_its_class_and_reason(
    chat: ChatClient, provider: ScriptedProvider, row: Row
) -> None:
    found = await failure(chat, provider, replies.document(row.body, row.status, row.headers))
    assert (type(found), found.reason) == (row.kind, row.reason)
    assert found.retry_after == row.retry_after
    assert found.metadata.get("option") == row.option
    assert "secret-detail" not in found.message


@pytest.mark.parametrize("name", ["", "error"])
@pytest.mark.parametrize(("event", "kind", "reason"), EVENTS)
async def test_an_error_after_200_has_its_class_and_reason(  # noqa: PLR0917 - a table's columns
    chat: ChatClient,
    provider: ScriptedProvider,
    name: str,
    event: object,
    kind: type[SluiceError],
    reason: str,
) -> None:
    head = f"event: {name}\n".encode() if name else b""
    reply = replies.stream(replies.chunk("half"), head + replies.event(event), replies.DONE)
    found = await failure(chat, provider, reply)
    assert (type(found), found.reason) == (kind, reason)
    assert "secret-detail" not in found.message


@pytest.mark.parametrize("parts", [(), (replies.chunk("half"),)])
@pytest.mark.parametrize("body", [b'{"error": {"message": "?"}}\n', b'{"error": "Unexpected"}'])
async def test_a_bare_error_where_a_stream_was_promised_is_no_answer(
    chat: ChatClient, provider: ScriptedProvider, parts: tuple[bytes, ...], body: bytes
) -> None:
    found = await failure(chat, provider, replies.stream(*parts, body))
    assert type(found) is failures.Incomplete
