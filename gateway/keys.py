"""The keys that an issuer publishes at an address, as JWK set (RFC 7517)."""

import asyncio
import json
import math
import time
from collections.abc import Callable, Collection

import httpx
import jwt
import structlog
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from chassis.errors import Unauthenticated, Unavailable

FETCH_SECONDS = 1.5  # below what a regular check may take
AGAIN_AFTER = 5.0  # seconds between two fetches, whoever wants them
FRESH_SECONDS = 300.0
# An issuer that does not answer for so long is believed no more.
KEPT_SECONDS = 3_600.0
SET_BYTES = 256 * 1024
SET_KEYS = 100
RSA_BITS = 2_048
KINDS = ("RSA", "EC", "OKP")

Clock = Callable[[], float]

log = structlog.get_logger()


class Keys:
    """Those of one issuer that sign by one of `algorithms`.

    The regular check renews them. A key that is not known is asked for at once, though never
    oftener than every AGAIN_AFTER seconds, so that nobody can make this process ask without end.
    """

    def __init__(
        self, url: str, algorithms: Collection[str], clock: Clock = time.monotonic
    ) -> None:
        self._url = url
        self._algorithms = algorithms
        self._clock = clock
        # Compressed, a small response can be a large set.
        self._client = httpx.AsyncClient(
            timeout=FETCH_SECONDS, headers={"Accept-Encoding": "identity"}
        )
        self._keys: list[jwt.PyJWK] = []
        self._fetched = self._tried = -math.inf
        self._fetching: asyncio.Task[None] | None = None

    async def key(self, name: str | None, algorithm: str) -> jwt.PyJWK:
        """The key of that name; without a name the only one that signs by the algorithm.

        Raises Unauthenticated when there is none, Unavailable while no keys can be had.
        """
        if self._find(name, algorithm) is None:
            await self._fetch()
        found = self._find(name, algorithm)
        if found is not None:
            return found
        if not self._held():
            raise Unavailable(
                "tokens cannot be checked now: their issuer's keys are not to be had",
                reason="KEYS_UNAVAILABLE",
            )
        raise Unauthenticated("the token is signed with no key of the issuer", reason="BAD_TOKEN")

    async def check(self) -> None:
        """Renew the keys when it is time. Raises Unavailable while the last attempt failed."""
        if self._clock() - self._fetched >= FRESH_SECONDS or self._tried > self._fetched:
            await self._fetch()
        if self._tried > self._fetched:
            raise Unavailable("the issuer's keys cannot be fetched")

    async def close(self) -> None:
        if self._fetching is not None:
            self._fetching.cancel()
            await asyncio.gather(self._fetching, return_exceptions=True)
        await self._client.aclose()

    def _held(self) -> list[jwt.PyJWK]:
        return self._keys if self._clock() - self._fetched < KEPT_SECONDS else []

    def _find(self, name: str | None, algorithm: str) -> jwt.PyJWK | None:
        signing = [key for key in self._held() if key.algorithm_name == algorithm]
        found = [key for key in signing if name is None or key.key_id == name]
        return found[0] if len(found) == 1 else None

    async def _fetch(self) -> None:
        """Fetch once for all who want it now. The work goes on when one of them leaves."""
        if self._fetching is None or self._fetching.done():
            if self._clock() - self._tried < AGAIN_AFTER:
                return
            self._tried = self._clock()
            self._fetching = asyncio.create_task(self._renew())
        await asyncio.wait((self._fetching,))

    async def _renew(self) -> None:
        try:
            async with asyncio.timeout(FETCH_SECONDS):
                keys = usable(await self._read(), self._algorithms)
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError, ValueError) as error:
            log.warning("keys_not_fetched", kind=type(error).__name__, problem=str(error))
            return
        self._keys, self._fetched = keys, self._clock()

    async def _read(self) -> bytes:
        body = bytearray()
        async with self._client.stream("GET", self._url) as response:
            response.raise_for_status()
            async for piece in response.aiter_raw():
                body += piece
                if len(body) > SET_BYTES:
                    raise ValueError(f"a key set of more than {SET_BYTES:,} bytes")
        return bytes(body)


def usable(raw: bytes, algorithms: Collection[str]) -> list[jwt.PyJWK]:
    """The keys of a set that can check signatures by the algorithms. Raises ValueError."""
    try:
        found = json.loads(raw)
    except RecursionError as error:
        raise ValueError("a key set of endless brackets") from error
    listed = found.get("keys") if isinstance(found, dict) else None
    if not isinstance(listed, list) or len(listed) > SET_KEYS:
        raise ValueError(f"no key set of at most {SET_KEYS} keys")
    read = (_read_key(entry) for entry in listed if isinstance(entry, dict))
    keys = [key for key in read if key is not None and key.algorithm_name in algorithms]
    if not keys:
        raise ValueError("a key set without a key that can be used")
    return keys


def _read_key(entry: dict[str, object]) -> jwt.PyJWK | None:
    """None for a key that is meant for something else, is a secret, weak, or cannot be read."""
    if entry.get("use", "sig") != "sig" or entry.get("kty") not in KINDS:
        return None
    try:
        key = jwt.PyJWK(entry)
    # Whatever stands in a field: the library's own checks let TypeError and others through.
    except (jwt.PyJWTError, ValueError, TypeError, AttributeError, KeyError):
        return None
    weak = isinstance(key.key, RSAPublicKey) and key.key.key_size < RSA_BITS
    return None if weak else key
