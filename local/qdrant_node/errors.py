"""What the node refuses, and how the engine's failures are told apart."""

from collections.abc import Iterator
from contextlib import contextmanager

import grpc


class EngineFault(Exception):
    """The engine could not do what it was asked to. The message is its own."""


@contextmanager
def engine_faults() -> Iterator[None]:
    """Tells the engine's failures, which are bare `Exception`s, from all others."""
    try:
        yield
    except Exception as failure:
        if type(failure) is not Exception:
            raise
        raise EngineFault(str(failure)) from failure


class StartError(Exception):
    """The node cannot start; the message says what to change."""


class Refusal(Exception):
    """A request that is answered with a status other than OK."""

    status = grpc.StatusCode.INTERNAL
    prefix = ""

    def __str__(self) -> str:
        return self.prefix + super().__str__()


class BadInput(Refusal):
    status = grpc.StatusCode.INVALID_ARGUMENT
    prefix = "Wrong input: "


class Missing(Refusal):
    status = grpc.StatusCode.NOT_FOUND
    prefix = "Not found: "


class Exists(Refusal):
    status = grpc.StatusCode.ALREADY_EXISTS
    prefix = "Wrong input: "


class Unserved(Refusal):
    """A part of Qdrant's API that this node does not have; the message names the part."""

    status = grpc.StatusCode.UNIMPLEMENTED

    def __str__(self) -> str:
        return f"{super().__str__()}: not served by the local Qdrant node"


# The engine raises bare `Exception`s; only the beginning of the text says which kind it is.
_BAD_INPUT = (
    "Vector dimension error",
    "Not existing vector name error",
    "Wrong usage of sparse vectors",
    "Wrong usage of multi vectors",
    "Validation failed",
    "Payload type does not match",
    "Unable to infer type",
    "No range index for `order_by`",
    "No appropriate index for faceting",
)
_MISSING = "No point with id"


def engine_refusal(failure: BaseException) -> Refusal | None:
    """The refusal that an engine's failure means, or None when the failure is a fault.

    `ValueError` is what the engine raises for a value that it cannot read, such as a JSON path.
    """
    text = str(failure)
    if type(failure) is ValueError:
        return BadInput(text)
    if type(failure) is Exception and text.startswith(_BAD_INPUT):
        return BadInput(text)
    if type(failure) is Exception and text.startswith(_MISSING):
        return Missing(text)
    return None
