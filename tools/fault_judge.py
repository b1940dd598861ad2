"""Oracle of fault trials: rules for a store's answers after its server has failed.

It records what every client requested and received, and reads what is stored, bypassing the stores.

Rule 1: at most one claim succeeds with a given etag of a partition.
Rule 2: an etag that a claim returned is stored, or another claim has been made with it since. A
    server that forgets what it has confirmed, or a store that invents a claim, breaks this.
Rule 3: once a checkpoint is confirmed, no read that bypasses the store finds a lower number.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple


class Claim(NamedTuple):
    """Proposal and its outcome.

    Attributes:
        etag: etag that it was made with; None for a first claim.
        given: new etag; None if the claim was lost, or its outcome is unknown.
    """

    partition_id: str
    owner_id: str
    etag: str | None
    given: str | None


class Write(NamedTuple):
    """Checkpoint; `ended` is when it was confirmed, or None."""

    partition_id: str
    number: int
    ended: float | None


class Reading(NamedTuple):
    """Checkpoint as stored; `began` is when reading it began."""

    partition_id: str
    number: int
    began: float


class JudgeError(AssertionError):
    """A rule was broken."""


@dataclass
class Judge:
    """All requests and answers; appending is thread-safe."""

    claims: list[Claim] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)
    readings: list[Reading] = field(default_factory=list)

    def owners(self, stored: Mapping[str, str]) -> None:
        """Check rules 1 and 2, with the stored etag of each partition.

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
        """Check rule 1."""
        won = [one for one in self.claims if one.given is not None]
        twice(((one.partition_id, one.etag) for one in won), "won twice with one etag")
        twice(((one.partition_id, one.given) for one in won), "given twice")

    def checkpoints(self) -> None:
        """Check rule 3, and that nothing is stored that was never written.

        Raises:
            JudgeError: it is broken.
        """
        highest = {one.partition_id: one.number for one in sorted(self.writes, key=by_number)}
        confirmed: dict[str, int] = {}
        confirmations = sorted(
            (one.ended, one.partition_id, one.number)
            for one in self.writes
            if one.ended is not None
        )
        confirmations.reverse()
        for seen in sorted(self.readings, key=by_beginning):
            while confirmations and confirmations[-1][0] < seen.began:
                _, partition_id, number = confirmations.pop()
                confirmed[partition_id] = max(number, confirmed.get(partition_id, -1))
            if seen.number > highest.get(seen.partition_id, -1):
                raise JudgeError(f"{seen}, which nobody has written")
            floor = confirmed.get(seen.partition_id, -1)
            if seen.number < floor:
                raise JudgeError(f"{seen}, after {floor} was confirmed")

    def so_far(self) -> "Judge":
        """Return a copy, to be asked about this moment later."""
        return Judge([*self.claims], [*self.writes], [*self.readings])

    def forgotten_checkpoints(self, stored: Mapping[str, int], since: int = 0) -> int:
        """Return how many confirmed checkpoints are above what is stored, from write `since` on.

        The numbers of all writers come from one count.
        """
        confirmed = [one for one in self.writes[since:] if one.ended is not None]
        return sum(one.number > stored.get(one.partition_id, -1) for one in confirmed)

    def forgotten_claims(self, stored: Mapping[str, str], since: int = 0) -> int:
        """Return how many won claims are not what is stored led to, from claim `since` on.

        Counted are partitions that only their owner claims, so that its claims are in order. A
        claim is forgotten if it was won after the stored etag had been passed.
        """
        chains: dict[str, list[tuple[int, Claim]]] = {}
        for at, one in enumerate(self.claims):
            if one.partition_id == one.owner_id:
                chains.setdefault(one.partition_id, []).append((at, one))
        return sum(
            at >= since and one.given is not None
            for key, chain in chains.items()
            for at, one in not_led_to(stored.get(key), chain)
        )

    def won_twice(self) -> int:
        """Return how many times an etag was won with although it had been already."""
        won = Counter((one.partition_id, one.etag) for one in self.claims if one.given is not None)
        return sum(count - 1 for count in won.values())


def not_led_to(etag: str | None, chain: Sequence[tuple[int, Claim]]) -> Sequence[tuple[int, Claim]]:
    """Return the claims that one owner made after an etag, which is stored, had been passed."""
    if etag is None:
        return chain
    begin = len(chain)  # an etag that no claim knows is that of a last one without an answer
    for at, (_, one) in enumerate(chain):
        if etag == one.etag:
            begin = at
        elif etag == one.given:
            begin = at + 1
    return chain[begin:]


def by_number(write: Write) -> int:
    """Return the sort key of a checkpoint: its sequence number."""
    return write.number


def by_beginning(reading: Reading) -> float:
    """Return the sort key of a reading: when it began."""
    return reading.began


def twice(keys: Iterable[tuple[str, str | None]], what: str) -> None:
    """Refuse duplicates.

    Raises:
        JudgeError: there is one.
    """
    for key, count in Counter(keys).items():
        if count > 1:
            raise JudgeError(f"{key} was {what}")
