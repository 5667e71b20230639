"""Who the person at the terminal is: a token they bring, or a development identity."""

from collections.abc import Callable
from dataclasses import dataclass

from chassis.errors import Unauthenticated
from chassis.identity import AccessLevel, Caller, Minter, development_key
from gateway.identity import development_token

INGEST_ROLE = "ingest"

Token = Callable[[], str]


def expired(error: Exception) -> bool:
    """Whether a token outlived its time, which the next call's own token mends."""
    return isinstance(error, Unauthenticated) and error.reason == "TOKEN_EXPIRED"


@dataclass(frozen=True, slots=True)
class Identity:
    """`token`, when set, is used as it is; else a development token is minted for each call."""

    subject: str
    tenant: str
    level: AccessLevel
    groups: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    token: str = ""

    def for_gateway(self, lifetime: int = 300) -> str:
        """A token that the gateway accepts for `lifetime` seconds in development."""
        return self.token or development_token(
            self.subject,
            self.tenant,
            self.level,
            groups=self.groups,
            roles=self.roles,
            lifetime=lifetime,
        )

    def for_ingest(self) -> str:
        """A token that ingest accepts; tokens of the outside end at the gateway."""
        caller = Caller(
            self.subject,
            self.tenant,
            self.level,
            frozenset(self.groups),
            frozenset({*self.roles, INGEST_ROLE}),
        )
        return self.token or Minter(development_key()).mint(caller, "ingest")
