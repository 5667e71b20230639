"""A new collection takes the place of the one that readers use, once it holds as much.

A changed embedding profile or chunking version is another collection. It is filled beside the old
one, by a process of its own that works exactly as the others do; then the alias moves.
"""

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

from chassis.errors import Conflict
from services.ingest.index import Index
from services.ingest.lease import Lease, Leases
from services.ingest.publish import Publisher

SHOWN = 5  # missing documents that a refusal names


@dataclass(frozen=True, slots=True)
class Switched:
    """Names of collections; `previous` is empty where there was none."""

    current: str
    previous: str
    missing: int


@dataclass(frozen=True, slots=True)
class Succession:
    """`current` is what readers use, `following` what they are to use."""

    current: Index
    following: Index
    leases: Leases

    async def switch(self, tenant: str, *, allow_missing: bool, drop_previous: bool) -> Switched:
        """Move all readers at once, of every tenant; `tenant` is who asks for it.

        Nobody publishes meanwhile. Raises Conflict (DOCUMENTS_MISSING) while somebody has a
        document that the following collection lacks, unless that is allowed.
        """
        await self.following.ensure()
        tenants = await self.current.tenants()
        async with AsyncExitStack() as stack:
            held = {
                each: await stack.enter_async_context(self.leases.hold(each)) for each in tenants
            }
            missing: dict[str, list[str]] = {}
            for each in tenants:
                missing[each] = await self._missing(each)
                await _keep(held)
            lacking = sum(map(len, missing.values()))
            if lacking and not allow_missing:
                raise _incomplete(lacking, missing.get(tenant, []))
            for each, lease in held.items():
                await self._pass(each, lease)
                await _keep(held)
            previous = await self.following.succeed()
        if drop_previous and previous:
            await self.following.drop(previous)
        return Switched(self.following.name, previous, lacking)

    async def _missing(self, tenant: str) -> list[str]:
        before = await self.current.document_ids(tenant, "", await self.current.epoch(tenant))
        after = await self.following.document_ids(tenant, "", await self.following.epoch(tenant))
        there = set(after)
        return [name for name in before if name not in there]

    async def _pass(self, tenant: str, lease: Lease) -> None:
        """Put the new collection at an epoch that no reader of the old one has ever been at.

        Whoever compares two epochs must not take the two collections for one.
        """
        last = await self.current.epoch(tenant)
        epoch = await Publisher(self.following, lease, tenant).begin()
        if epoch <= last:
            await self.following.advance(tenant, epoch, lease.token, to=last + 1)


async def _keep(held: Mapping[str, Lease]) -> None:
    """None may lapse while the others are looked at."""
    for lease in held.values():
        await lease.extend()


def _incomplete(lacking: int, own: Sequence[str]) -> Conflict:
    """Names are the asking tenant's own: nobody learns of others' documents."""
    names = ", ".join(own[:SHOWN]) + (", ..." if len(own) > SHOWN else "")
    return Conflict(
        f"{lacking} documents are not in the new collection yet{f': {names}' if names else ''};"
        " ingest them into it first, or allow that they are missing",
        reason="DOCUMENTS_MISSING",
    )
