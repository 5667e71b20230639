"""Why an attempt may not start.

Exhausted
└── CapacityRefused            the pool's allowance is used up for now
InvalidInput
└── CapacityTooLarge           more than the pool can ever hold for this workload
Unavailable
└── CapacityUnavailable        Redis did not decide within the time limit: nothing was admitted
    └── CapacityCircuitOpen    the provider was repeatedly unavailable: nobody is asked for now
"""

from chassis.errors import Exhausted, InvalidInput, Unavailable


class CapacityRefused(Exhausted):
    """`reason` is CAPACITY_ and one of REQUESTS, TOKENS, IN_FLIGHT, COOLDOWN, LAPSED.

    `retry_after` is exact if nobody else reserves meanwhile, and None where places are short:
    when an attempt ends is not known. CAPACITY_LAPSED is told to one that waited for its start
    while the pool lost its state.
    """

    default_reason = "CAPACITY_REFUSED"


class CapacityTooLarge(InvalidInput):
    """Final: waiting never helps. `field` is `tokens`."""

    default_reason = "CAPACITY_TOO_LARGE"


class CapacityUnavailable(Unavailable):
    default_reason = "CAPACITY_UNAVAILABLE"


class CapacityCircuitOpen(CapacityUnavailable):
    """`retry_after` is None while the one attempt that tests the provider runs."""

    default_reason = "CAPACITY_CIRCUIT_OPEN"
