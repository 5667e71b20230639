"""Parts of the admission that let everybody in, for tests of everything else."""

from chassis.identity import Caller
from gateway.quota import Verdict


class Boundless:
    async def charge(self, caller: Caller) -> Verdict:
        return Verdict(())


class Everywhere:
    """Places without number. It knows which are taken."""

    def __init__(self) -> None:
        self.taken: set[str] = set()
        self.given = 0

    async def take(self) -> str | None:
        place = str(len(self.taken) + self.given)
        self.taken.add(place)
        return place

    async def give(self, place: str) -> None:
        self.taken.remove(place)
        self.given += 1
