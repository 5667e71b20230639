"""Who may call the provider now: one allowance, shared by every process."""

from capacity.bucket import SharedBucket
from capacity.pool import InvalidLimit, Limits, Workload
from capacity.refusals import CapacityRefused, CapacityTooLarge, CapacityUnavailable
from capacity.reservation import Reservation

__all__ = [
    "CapacityRefused",
    "CapacityTooLarge",
    "CapacityUnavailable",
    "InvalidLimit",
    "Limits",
    "Reservation",
    "SharedBucket",
    "Workload",
]
