"""Who may call the provider now: one allowance, shared by every process."""

from capacity.bucket import SharedBucket
from capacity.circuit import CircuitState
from capacity.pool import InvalidLimit, Limits, Workload
from capacity.refusals import (
    CapacityCircuitOpen,
    CapacityRefused,
    CapacityTooLarge,
    CapacityUnavailable,
)
from capacity.reservation import Reservation
from capacity.snapshot import Dimension, Mode, Room, Snapshot

__all__ = [
    "CapacityCircuitOpen",
    "CapacityRefused",
    "CapacityTooLarge",
    "CapacityUnavailable",
    "CircuitState",
    "Dimension",
    "InvalidLimit",
    "Limits",
    "Mode",
    "Reservation",
    "Room",
    "SharedBucket",
    "Snapshot",
    "Workload",
]
