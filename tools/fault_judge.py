"""What may be said of a store's answers after its server has failed: the oracle of fault trials.

It knows what every client asked and was answered, and reads what is stored past all stores.

Rule 1: of the claims that were won with one etag of one partition, there is one at most.
Rule 2: an etag that a claim was given is stored, or somebody has claimed with it since. A server
    that forgets what it has confirmed, and a store that invents a claim, break this.
Rule 3: a checkpoint that was confirmed is never read past the store with a lower number again.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


class Claim(NamedTuple):
    """One proposal, and what came of it.

    Attributes:
        etag: that it was made with; None for a first claim.
        given: the new etag; None where it was lost, or its outcome is not known.
    """

    partition_id: str
    owner_id: str
    etag: str | None
    given: str | None


class Write(NamedTuple):
    """One checkpoint; `ended` is when it was confirmed, None where it was not."""

    partition_id: str
    number: int
    ended: float | None


class Reading(NamedTuple):
    """A checkpoint as it is stored; `began` is when it was asked for."""

    partition_id: str
    number: int
    began: float


class JudgeError(AssertionError):
    """A rule was broken."""


@dataclass
class Judge:
    """All that was asked and answered; appending is safe from any thread."""

    claims: list[Claim] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)
    readings: list[Reading] = field(default_factory=list)

    def owners(self, stored: Mapping[str, str]) -> None:
        """Rules 1 and 2, with the etag that is stored for each partition.

        Raises:
            JudgeError: one is broken.
        """
        self.one_winner_each()
        asked_with = {(one.partition_id, one.etag) for one in self.claims}
        for one in self.claims:
            if one.given is None or stored.get(one.partition_id) == one.given:
                continue
            if (one.partition_id, one.given) not in asked_with:
                raise JudgeError(f"{one} was won, and {stored.get(one.partition_id)} is stored")

    def one_winner_each(self) -> None:
        """Rule 1."""
        won = [one for one in self.claims if one.given is not None]
        twice(((one.partition_id, one.etag) for one in won), "won twice with one etag")
        twice(((one.partition_id, one.given) for one in won), "given twice")

    def checkpoints(self) -> None:
        """Rule 3, and that nothing is stored that was never written.

        Raises:
            JudgeError: it is broken.
        """
        highest = {one.partition_id: one.number for one in sorted(self.writes, key=by_number)}
        for seen in self.readings:
            if seen.number > highest.get(seen.partition_id, -1):
                raise JudgeError(f"{seen}, which nobody has written")
            floor = self._confirmed(seen.partition_id, seen.began)
            if seen.number < floor:
                raise JudgeError(f"{seen}, after {floor} was confirmed")

    def _confirmed(self, partition_id: str, until: float) -> int:
        numbers = [
            one.number
            for one in self.writes
            if one.partition_id == partition_id and one.ended is not None and one.ended < until
        ]
        return max(numbers, default=-1)


def by_number(write: Write) -> int:
    """The order of checkpoints."""
    return write.number


def twice(keys: Iterable[tuple[str, str | None]], what: str) -> None:
    """Nothing may be there twice.

    Raises:
        JudgeError: something is.
    """
    for key, count in Counter(keys).items():
        if count > 1:
            raise JudgeError(f"{key} was {what}")
