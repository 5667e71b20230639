"""What can go wrong between us and a provider, and the one place that reads openai's errors.

Unavailable
├── ProviderUnavailable   PROVIDER_UNAVAILABLE: no connection, or a 5xx
├── AttemptTimeout        ATTEMPT_TIMEOUT: this attempt's own time is over, the request's is not
├── Incomplete            INCOMPLETE: the stream ended without its end
├── InvalidReply          INVALID_REPLY: a reply that the protocol does not allow
└── Refused               REFUSED: the model refused, or a filter withheld its answer
Exhausted
└── Throttled             PROVIDER_THROTTLED, with `retry_after` where the provider said it
ContractMismatch
├── Misconfigured         PROVIDER_CREDENTIALS, DEPLOYMENT_UNKNOWN or PROVIDER_REJECTED
└── ContextTooLong        CONTEXT_LENGTH: it was counted as fitting and did not fit

Messages are ours. What the provider wrote goes to the log alone.
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime

import httpx2
import openai
import structlog

from chassis.errors import ContractMismatch, Exhausted, SluiceError, Unavailable
from providers import retry_after

log = structlog.get_logger()

# What the openai client lets through or raises: besides its own tree, JSON it could not read.
RAISED = (openai.OpenAIError, httpx2.HTTPError, json.JSONDecodeError)
CONTEXT_CODES = frozenset({"context_length_exceeded", "exceed_context_size_error"})
REFUSAL_CODES = frozenset({"content_filter", "content_policy_violation"})
THROTTLE_CODES = frozenset({"rate_limit_exceeded", "rate_limit_error"})
NEVER_CONNECTED = (httpx2.ConnectError, httpx2.ConnectTimeout)
CREDENTIALS = frozenset({401, 403})
NOT_FOUND = 404
TRANSIENT = frozenset({408, 409})
THROTTLED = 429
SERVER_ERROR = 500
LOGGED_CHARACTERS = 500


class ProviderUnavailable(Unavailable):
    default_reason = "PROVIDER_UNAVAILABLE"


class AttemptTimeout(Unavailable):
    default_reason = "ATTEMPT_TIMEOUT"


class Incomplete(Unavailable):
    default_reason = "INCOMPLETE"


class InvalidReply(Unavailable):
    default_reason = "INVALID_REPLY"


class Refused(Unavailable):
    default_reason = "REFUSED"


class Throttled(Exhausted):
    default_reason = "PROVIDER_THROTTLED"


class Misconfigured(ContractMismatch):
    default_reason = "PROVIDER_REJECTED"


class ContextTooLong(ContractMismatch):
    default_reason = "CONTEXT_LENGTH"


# What speaks against the provider being there at all, and what it can only have said itself. A
# throttle says neither.
SILENT = (ProviderUnavailable, AttemptTimeout, Incomplete)
ANSWERED = (InvalidReply, Refused, Misconfigured, ContextTooLong)


def classify(error: Exception, pool: str) -> SluiceError:
    """The error of ours that stands for one of RAISED; its text is logged under the pool."""
    failure = _failure(error)
    log.warning(
        "provider_failed",
        pool=pool,
        reason=failure.reason,
        status=getattr(error, "status_code", None),
        code=getattr(error, "code", None),
        provider_text=str(error)[:LOGGED_CHARACTERS],
    )
    return failure


def headers(error: Exception) -> Mapping[str, str]:
    """The head of the provider's reply; empty where there is none."""
    return error.response.headers if isinstance(error, openai.APIStatusError) else {}


def never_connected(error: Exception) -> bool:
    """Whether the provider cannot have seen anything of the attempt."""
    return isinstance(error.__cause__ or error, NEVER_CONNECTED)


def _failure(error: Exception) -> SluiceError:
    if isinstance(error, openai.APIStatusError):
        return _by_status(error)
    if isinstance(error, openai.APITimeoutError | httpx2.TimeoutException):
        return AttemptTimeout("the model provider did not answer in time")
    if isinstance(error, openai.APIConnectionError | httpx2.HTTPError):
        return ProviderUnavailable("the model provider cannot be reached")
    if isinstance(error, openai.APIError):
        return _by_code(error)
    return InvalidReply("the model provider's reply cannot be read")


def _by_status(error: openai.APIStatusError) -> SluiceError:
    status = error.status_code
    if status == THROTTLED:
        wait = retry_after.parse(headers(error), datetime.now(UTC))
        return Throttled("the model provider asks to wait", retry_after=wait)
    if status >= SERVER_ERROR or status in TRANSIENT:
        return ProviderUnavailable("the model provider does not answer")
    if status in CREDENTIALS:
        return Misconfigured(
            "the model provider refuses the configured credentials", reason="PROVIDER_CREDENTIALS"
        )
    if status == NOT_FOUND:
        return Misconfigured(
            "the model provider does not know the configured model", reason="DEPLOYMENT_UNKNOWN"
        )
    return _by_code(error, otherwise=Misconfigured("the model provider rejects the request"))


def _by_code(error: openai.APIError, otherwise: SluiceError | None = None) -> SluiceError:
    codes = {error.code, error.type}
    if codes & CONTEXT_CODES:
        return ContextTooLong("the model provider counts more tokens than fit")
    if codes & REFUSAL_CODES:
        return Refused("the model provider's filter withheld the answer")
    if codes & THROTTLE_CODES:
        # In the middle of a stream: the head of the reply was written before and does not tell.
        return Throttled("the model provider asks to wait")
    return otherwise or ProviderUnavailable("the model provider failed while it answered")
