"""What can go wrong between us and a provider.

Unavailable
├── ProviderUnavailable   PROVIDER_UNAVAILABLE: no connection, a 5xx, or a model still loading
├── AttemptTimeout        ATTEMPT_TIMEOUT: this attempt's own time is over, the request's is not
├── Incomplete            INCOMPLETE: the stream ended without its end
├── InvalidReply          INVALID_REPLY: a reply that the protocol does not allow
└── Refused               REFUSED: the model refused, or a filter withheld its answer
Exhausted
└── Throttled             PROVIDER_THROTTLED, with `retry_after` where the provider said it
ContractMismatch
├── Misconfigured         PROVIDER_CREDENTIALS, PROVIDER_QUOTA (none is left, and waiting brings
│   │                     none), DEPLOYMENT_UNKNOWN or PROVIDER_REJECTED
│   └── NoToken           PROVIDER_CREDENTIALS: the identity got no token; nothing was sent
├── UnsupportedOption     UNSUPPORTED_OPTION: `metadata` names the option where it is known
└── ContextTooLong        CONTEXT_LENGTH: it was counted as fitting and did not fit

Messages are ours. What the provider wrote goes to the log alone.
"""

from chassis.errors import ContractMismatch, Exhausted, Unavailable


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


class NoToken(Misconfigured):
    default_reason = "PROVIDER_CREDENTIALS"


class UnsupportedOption(ContractMismatch):
    default_reason = "UNSUPPORTED_OPTION"


class ContextTooLong(ContractMismatch):
    default_reason = "CONTEXT_LENGTH"


# What speaks against the provider being there at all, and what it can only have said itself. A
# throttle says neither.
SILENT = (ProviderUnavailable, AttemptTimeout, Incomplete)
ANSWERED = (InvalidReply, Refused, Misconfigured, UnsupportedOption, ContextTooLong)
