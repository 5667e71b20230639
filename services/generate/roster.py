"""Which candidates may answer: those whose report holds today. Of the others the log says why."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import structlog

from providers.endpoint import Endpoint
from services.generate.listing import Listed
from services.generate.qualification import (
    SCHEMA_VERSION,
    Qualification,
    Standard,
    Unqualified,
    fingerprint,
    qualified,
    read,
    validation_version,
)

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Admitted:
    """`qualification` is None for the first candidate where no report was asked for."""

    endpoint: Endpoint
    qualification: Qualification | None = None


@dataclass(frozen=True, slots=True)
class Admission:
    """What candidates are held to. `needs_price` where a question's cost is bounded."""

    floor: float
    needs_price: bool = False

    def roster(
        self, first: Endpoint, report: Path | None, others: Sequence[Listed]
    ) -> list[Admitted]:
        """In order; the first is disabled only by a `report` that does not hold."""
        found = [Admitted(first)] if report is None else self._able(first, report)
        for listed in others:
            found += self._able(listed.endpoint, listed.report)
        return found

    def _able(self, endpoint: Endpoint, report: Path) -> list[Admitted]:
        try:
            return [self._admitted(endpoint, report)]
        except Unqualified as reason:
            log.error("candidate_disabled", candidate=endpoint.id, reason=str(reason))  # noqa: TRY400 - told, not ours
            return []

    def _admitted(self, endpoint: Endpoint, report: Path) -> Admitted:
        if self.needs_price and endpoint.price is None:
            raise Unqualified("its price is not known, and questions have a bound on their cost")
        standard = Standard(fingerprint(endpoint), SCHEMA_VERSION, validation_version(self.floor))
        return Admitted(endpoint, qualified(read(report), standard))
