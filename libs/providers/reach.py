"""Whether an endpoint takes connections, at no cost to anybody's allowance."""

import asyncio
import contextlib
from urllib.parse import urlsplit

from providers.failures import ProviderUnavailable

LIMIT = 1.5  # seconds
PORTS = {"http": 80, "https": 443}


async def reach(base_url: str) -> None:
    """Open and close one TCP connection. Raises ProviderUnavailable."""
    address = urlsplit(base_url)
    try:
        port = address.port or PORTS.get(address.scheme, 443)
        async with asyncio.timeout(LIMIT):
            _, writer = await asyncio.open_connection(address.hostname, port)
    except (OSError, TimeoutError, ValueError) as error:  # ValueError: a port above 65535
        raise ProviderUnavailable(f"nothing answers at {address.netloc}") from error
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
