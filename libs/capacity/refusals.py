"""Why an attempt may not start.

Exhausted
└── CapacityRefused       the pool's allowance is used up for now
InvalidInput
└── CapacityTooLarge      more than the pool can ever hold for this workload
Unavailable
└── CapacityUnavailable   Redis did not decide within the time limit: nothing was admitted
"""

from chassis.errors import Exhausted, InvalidInput, Unavailable


class CapacityRefused(Exhausted):
    """`reason` is CAPACITY_REQUESTS, CAPACITY_TOKENS or CAPACITY_IN_FLIGHT.

    `retry_after` is exact if nobody else reserves meanwhile, and None where places are short:
    when an attempt ends is not known.
    """

    default_reason = "CAPACITY_REFUSED"


class CapacityTooLarge(InvalidInput):
    """Final: waiting never helps. `field` is `tokens`."""

    default_reason = "CAPACITY_TOO_LARGE"


class CapacityUnavailable(Unavailable):
    default_reason = "CAPACITY_UNAVAILABLE"
