"""A way to answer, as a process is made of it."""

from collections.abc import Sequence
from dataclasses import dataclass

from chassis.health import Dependency
from chassis.serve import Close
from services.generate.task import Answering


@dataclass(frozen=True, slots=True)
class Mode:
    """`dependencies` are what it calls; `close` is called after it, in order."""

    answering: Answering
    needs_messages: bool
    dependencies: Sequence[Dependency] = ()
    close: Sequence[Close] = ()
