"""What a call proves itself with: a key, or a token of the process's own identity (Entra ID)."""

import asyncio
import time
from collections.abc import Callable
from typing import Protocol

import structlog

from providers.endpoint import Credentials
from providers.failures import Misconfigured, NoToken

log = structlog.get_logger()

SCOPE = "https://ai.azure.com/.default"
# Seconds before its end that a token is replaced: longer than a call waits to be made.
AHEAD = 300.0
LOGGED_CHARACTERS = 500


class Token(Protocol):
    """`expires_on` is in seconds since 1970."""

    @property
    def token(self) -> str: ...

    @property
    def expires_on(self) -> int: ...


class Identity(Protocol):
    """Who the process is, as azure-identity's asynchronous credentials are."""

    async def get_token(self, *scopes: str) -> Token: ...

    async def close(self) -> None: ...


class Tokens:
    """The identity's token, asked for again shortly before it ends. `clock` as for `Token`."""

    def __init__(self, identity: Identity, clock: Callable[[], float] = time.time) -> None:
        self._identity = identity
        self._clock = clock
        self._token: Token | None = None
        self._asking = asyncio.Lock()

    async def __call__(self) -> str:
        """Raises NoToken. Who is cancelled while it asks leaves the asking to the next one."""
        async with self._asking:
            if self._token is None or self._token.expires_on - self._clock() < AHEAD:
                self._token = await self._asked()
            return self._token.token

    async def close(self) -> None:
        await self._identity.close()

    async def _asked(self) -> Token:
        try:
            return await self._identity.get_token(SCOPE)
        except Exception as error:  # whatever the identity is made of: its errors are its own
            log.warning("no_token", error=type(error).__name__, text=str(error)[:LOGGED_CHARACTERS])
            raise NoToken("the configured identity gets no token") from error


def of(credentials: Credentials, key: str) -> str | Tokens:
    """What a client is made with. Raises Misconfigured where `entra` is not installed."""
    if credentials == "entra":
        return Tokens(_default_identity())
    return key if credentials == "key" else ""


def _default_identity() -> Identity:
    """What the surroundings provide: workload identity, managed identity, a developer's login."""
    try:
        from azure.identity.aio import DefaultAzureCredential  # noqa: PLC0415 - an optional extra

        identity: Identity = DefaultAzureCredential()
    except ImportError as error:
        raise Misconfigured(
            "Entra ID needs the packages azure-identity and aiohttp: pip install 'sluice[azure]'",
            reason="PROVIDER_CREDENTIALS",
        ) from error
    return identity
