"""The one place that reads the openai client's errors and the bodies that vendors send.

What decides is the status, and the words that programs are meant to read: `code`, `type`, `param`.
Only where a vendor sends none of them, its sentence is searched: Ollama and older releases of vLLM
and llama.cpp tell a prompt that is too long by nothing else.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

import httpx2
import openai
import structlog

from chassis.errors import SluiceError
from providers import retry_after
from providers.failures import (
    AttemptTimeout,
    ContextTooLong,
    InvalidReply,
    Misconfigured,
    ProviderUnavailable,
    Refused,
    Throttled,
    UnsupportedOption,
)

log = structlog.get_logger()

# What the openai client lets through or raises: besides its own tree, events it could not read
# (bad UTF-8, no JSON, numbers too long, brackets too deep).
RAISED = (openai.OpenAIError, httpx2.HTTPError, httpx2.StreamError, ValueError, RecursionError)
NEVER_CONNECTED = (httpx2.ConnectError, httpx2.ConnectTimeout)

CONTEXT = frozenset(
    {"context_length_exceeded", "exceed_context_size_error", "string_above_max_length"}
)
REFUSAL = frozenset(
    {
        "content_filter",
        "content_policy_violation",
        "responsibleaipolicyviolation",
        "invalid_prompt",  # a reasoning model's guard, before the model
    }
)
QUOTA = frozenset({"insufficient_quota", "billing_not_active", "billing_hard_limit_reached"})
UNKNOWN_MODEL = frozenset({"model_not_found", "deploymentnotfound"})
UNSUPPORTED = frozenset(
    {"unsupported_parameter", "unsupported_value", "unknown_parameter", "not_supported_error"}
)
THROTTLE = frozenset({"rate_limit_exceeded", "rate_limit_error"})
# What we send that an endpoint may not understand.
LIMITS = frozenset({"max_tokens", "max_completion_tokens"})
OPTIONS = LIMITS | {
    "temperature",
    "reasoning_effort",
    "response_format",
    "stream",
    "stream_options",
}

BAD_REQUEST = frozenset({400, 422})
TRANSIENT = frozenset({408, 409, 425})
THROTTLED = 429
SERVER_ERROR = 500

STATUS = re.compile(r"[45][0-9]{2}")
WORD = re.compile(r"[a-z0-9_.\[\]-]{1,64}")
TOO_LONG = re.compile(
    r"(?:maximum|max|exceed\w*)\b.{0,80}\bcontext (?:length|size|window)"
    r"|context (?:length|size|window)\b.{0,40}\bexceed"
    r"|prompt (?:is )?too long",
    re.IGNORECASE | re.DOTALL,
)
NOT_SUPPORTED = re.compile(
    r"does not support|not supported|unrecognized request arg", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class _Said:
    """An error as a provider told it. `status` is 0 where none was sent or named."""

    status: int
    words: frozenset[str]
    parameter: str
    text: str
    headers: Mapping[str, str] = field(default_factory=dict)


def failure(error: Exception, pool: str) -> SluiceError:
    """The error of ours that stands for one of RAISED, logged under the pool."""
    if isinstance(error, openai.APIStatusError):
        said = _of_reply(error)
        return _logged(_failure(said), pool, said)
    if isinstance(error, openai.APIError) and not isinstance(error, openai.APIConnectionError):
        said = _of_body(error.body, error.message)
        return _logged(_failure(said), pool, said)
    return _logged(_of_kind(error), pool, cause=_kind(error))


def told(event: object, pool: str) -> SluiceError:
    """As `failure`, of an error that came as an event of a stream."""
    said = _of_body(event)
    return _logged(_failure(said), pool, said)


def headers(error: Exception) -> Mapping[str, str]:
    """The head of the provider's reply; empty where there is none."""
    return error.response.headers if isinstance(error, openai.APIStatusError) else {}


def never_connected(error: Exception) -> bool:
    """Whether the provider cannot have seen anything of the attempt."""
    return isinstance(error.__cause__ or error, NEVER_CONNECTED)


def _logged(
    failed: SluiceError, pool: str, said: _Said | None = None, cause: str | None = None
) -> SluiceError:
    """Without what the provider wrote for people: it may repeat the question, or the key."""
    log.warning(
        "provider_failed",
        pool=pool,
        reason=failed.reason,
        problem=failed.message,
        mend=_MEND.get(failed.reason),
        retry_after=failed.retry_after,
        status=(said.status or None) if said else None,
        words=sorted(filter(WORD.fullmatch, said.words)) if said else [],
        parameter=said.parameter if said and WORD.fullmatch(said.parameter) else None,
        cause=cause,
        **failed.metadata,
    )
    return failed


def _kind(error: Exception) -> str:
    """The classes of an error and of what it came from."""
    inner = error.__cause__
    return type(error).__name__ + (f" from {type(inner).__name__}" if inner else "")


def _of_kind(error: Exception) -> SluiceError:
    if isinstance(error, openai.APITimeoutError | httpx2.TimeoutException):
        return AttemptTimeout("the model provider did not answer in time")
    if isinstance(error, openai.APIConnectionError | httpx2.HTTPError | httpx2.StreamError):
        return ProviderUnavailable("the model provider cannot be reached")
    return InvalidReply("the model provider's reply cannot be read")


def _of_reply(error: openai.APIStatusError) -> _Said:
    said = _of_body(error.body, error.message)
    return _Said(error.status_code, said.words, said.parameter, said.text, error.response.headers)


def _of_body(body: object, message: str = "") -> _Said:
    """Some name the status in `code`, which is all that an event in a stream has of it."""
    if not isinstance(body, Mapping):
        return _Said(0, frozenset(), "", message)
    inner = body.get("innererror")
    told = [body.get("code"), body.get("type")]
    told += [inner.get("code")] if isinstance(inner, Mapping) else []
    words = frozenset(str(word).lower() for word in told if word is not None)
    statuses = [int(word) for word in words if STATUS.fullmatch(word)]
    parameter = re.split(r"[.\[]", str(body.get("param") or ""))[0]
    return _Said(max(statuses, default=0), words, parameter, str(body.get("message") or message))


def _failure(said: _Said) -> SluiceError:
    return (
        _by_words(said) or _by_parameter(said) or _by_status(said) or _by_text(said) or _other(said)
    )


def _by_words(said: _Said) -> SluiceError | None:
    for words, make in _WORDS:
        if said.words & words:
            return make(said)
    # With a status of another kind it is a request that is larger than the whole rate.
    if said.words & THROTTLE and said.status in {0, THROTTLED}:
        return _throttled(said)
    return None


def _by_parameter(said: _Said) -> SluiceError | None:
    if said.status not in BAD_REQUEST:
        return None
    # vLLM's word for a prompt, or a prompt and an answer, above the model's length.
    if said.parameter == "input_tokens" or (
        said.parameter in LIMITS and "badrequesterror" in said.words
    ):
        return _too_long(said)
    return _unsupported(said) if said.parameter in OPTIONS else None


def _by_status(said: _Said) -> SluiceError | None:
    make = _STATUSES.get(said.status)
    return make(said) if make else None


def _by_text(said: _Said) -> SluiceError | None:
    if said.status in TRANSIENT or said.status > SERVER_ERROR:
        return None
    if TOO_LONG.search(said.text):
        return _too_long(said)
    if said.status in BAD_REQUEST and NOT_SUPPORTED.search(said.text):
        return _unsupported(said)
    return None


def _other(said: _Said) -> SluiceError:
    if said.status == 0:
        return ProviderUnavailable("the model provider failed while it answered")
    if said.status >= SERVER_ERROR or said.status in TRANSIENT:
        return ProviderUnavailable("the model provider does not answer")
    return Misconfigured("the model provider rejects the request")


def _throttled(said: _Said) -> SluiceError:
    wait = retry_after.parse(said.headers, datetime.now(UTC))
    return Throttled("the model provider asks to wait", retry_after=wait)


def _too_long(_: _Said) -> SluiceError:
    return ContextTooLong("the model provider counts more tokens than fit")


def _unknown_model(_: _Said) -> SluiceError:
    return Misconfigured(
        "the model provider does not know the configured model or address",
        reason="DEPLOYMENT_UNKNOWN",
    )


def _unsupported(said: _Said) -> SluiceError:
    return UnsupportedOption(
        "the model provider does not support an option that it is sent",
        metadata={"option": said.parameter} if said.parameter in OPTIONS else {},
    )


def _refused(_: _Said) -> SluiceError:
    return Refused("the model provider's filter withheld the answer")


def _no_quota(_: _Said) -> SluiceError:
    return Misconfigured(
        "the account behind the configured credentials has no quota left", reason="PROVIDER_QUOTA"
    )


def _no_credentials(_: _Said) -> SluiceError:
    return Misconfigured(
        "the model provider refuses the configured credentials", reason="PROVIDER_CREDENTIALS"
    )


# Of the endpoint's settings, those that mend a failure.
_MEND = {
    "PROVIDER_CREDENTIALS": "api_key or credentials",
    "PROVIDER_QUOTA": "the account's plan",
    "DEPLOYMENT_UNKNOWN": "model or base_url",
    "UNSUPPORTED_OPTION": ("limit_parameter, temperature, reasoning_effort or structured_output"),
    "CONTEXT_LENGTH": "context_limit or output_tokens",
}
_WORDS = (
    (CONTEXT, _too_long),
    (REFUSAL, _refused),
    (QUOTA, _no_quota),
    (UNKNOWN_MODEL, _unknown_model),
    (UNSUPPORTED, _unsupported),
)
_STATUSES = {
    401: _no_credentials,
    403: _no_credentials,
    404: _unknown_model,
    413: _too_long,
    429: _throttled,
    501: _unsupported,
}
