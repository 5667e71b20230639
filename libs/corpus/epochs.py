"""The one point per tenant that says which rows are live.

A row is live at epoch e when valid_from <= e < valid_to. Moving every reader from one state to the
next is a single write to a single point.
"""

from collections.abc import Mapping
from typing import Final

from chassis.errors import DataViolation
from corpus.failures import answered
from corpus.fields import Fields
from corpus.identity import uuid_of
from corpus.qdrant import Qdrant, wire

EPOCH: Final = "epoch"
TENANT: Final = "epoch_of"  # not tenant_id: no reader's filter may ever match this point
PUBLISHER: Final = "publisher"

# Range conditions compare as doubles: the largest whole number that is exact there.
LIVE: Final = 2**53 - 1


def point_id(tenant: str) -> str:
    """UUID of the tenant's epoch point."""
    return uuid_of("epoch", tenant)


async def read(qdrant: Qdrant, alias: str, tenant: str, seconds: float) -> int:
    """The tenant's epoch, found within `seconds`; 0 before anything was published.

    Raises what `failures.answered` raises, and DataViolation for a point that holds no epoch.
    """
    request = wire.GetPoints(
        collection_name=alias,
        ids=[wire.PointId(uuid=point_id(tenant))],
        with_payload=wire.WithPayloadSelector(enable=True),
    )
    reply: wire.GetResponse = await answered(qdrant.points.Get, request, seconds)
    return held(tenant, reply.result[0].payload if reply.result else None)


def held(tenant: str, payload: Mapping[str, wire.Value] | None) -> int:
    """The epoch in the tenant's point; 0 where there is none (None).

    Raises DataViolation for a point that holds no epoch.
    """
    if payload is None:
        return 0
    fields = Fields(point_id(tenant), payload)
    epoch = fields.number(EPOCH)
    if epoch >= LIVE or fields.text(TENANT) != tenant:
        raise DataViolation(f"point {point_id(tenant)} holds no epoch of its tenant")
    return epoch
