"""What one worker writes down of its claims, its events and its writes; any thread may."""

import random
import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from processing_chaos.journal import NOTHING, Journal
from processing_chaos.orders import Orders

PARTITIONS = ("0", "1")


class UnluckyError(Exception):
    """An event that could not be processed this time."""


class Claim:
    """One claim of a partition.

    Attributes:
        is_announced: whether the client has said that the partition is open; a sync client may
            deliver events before.
    """

    def __init__(self, journal: Journal, partition: str, number: int) -> None:
        self._journal = journal
        self.partition = partition
        self._number = number
        self.is_announced = False

    def begun(self, event: Any) -> None:
        """The library knows of the event."""
        self._journal.write("begun", self.partition, self._number, event.sequence_number)

    def done(self, event: Any) -> None:
        """It is processed, and the library is told next."""
        self._journal.write("done", self.partition, self._number, event.sequence_number)

    def failed(self, event: Any) -> None:
        """It is given up for this claim."""
        self._journal.write("failed", self.partition, self._number, event.sequence_number)

    def raised(self, event: Any) -> None:
        """The handler raises, and may be given it again."""
        self._journal.write("raised", self.partition, self._number, event.sequence_number)

    def closing(self, reason: Any) -> None:
        """The client closes the partition."""
        stops = int(reason.name == "SHUTDOWN")
        self._journal.write("closing", self.partition, self._number, stops)

    def closed(self) -> None:
        """The library has ended the claim."""
        self._journal.write("closed", self.partition, self._number)


class Diary:
    """The claims of a worker, and what its store is asked."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._guard = threading.Lock()
        self._claims: dict[str, Claim] = {}
        self._counts: Counter[str] = Counter()
        self._listed: Mapping[str, int] = {}

    def listing(self) -> None:
        """Positions are read from now on."""
        self._journal.write("listing")

    def listed(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """These were read."""
        found = {row["partition_id"]: row["sequence_number"] for row in rows}
        self._listed = {one: found.get(one, NOTHING) for one in PARTITIONS}
        for partition, number in self._listed.items():
            self._journal.write("listed", partition, 0, number)

    def open(self, partition: str, *, announces: bool) -> Claim:
        """The claim that a partition is in; begun by its first event, or when it is announced."""
        with self._guard:
            known = self._claims.get(partition)
            if known is None or (announces and known.is_announced):
                self._counts[partition] += 1
                number = self._counts[partition]
                known = self._claims[partition] = Claim(self._journal, partition, number)
                self._journal.write("claimed", partition, number, self._listed[partition])
            known.is_announced |= announces
            return known

    def forget(self, claim: Claim) -> None:
        """The next event of its partition is one of another claim."""
        with self._guard:
            if self._claims.get(claim.partition) is claim:
                del self._claims[claim.partition]

    def saving(self, checkpoint: Mapping[str, Any]) -> None:
        """The store is told next."""
        self._note("saving", checkpoint)

    def saved(self, checkpoint: Mapping[str, Any], error: BaseException | None) -> None:
        """The store has answered."""
        if error is None:
            self._note("saved", checkpoint)
        elif type(error).__name__ == "StaleCheckpointError":
            self._note("refused", checkpoint)
        else:
            self._note("unsaved", checkpoint)

    def _note(self, what: Any, checkpoint: Mapping[str, Any]) -> None:
        partition = checkpoint["partition_id"]
        self._journal.write(what, partition, self._counts[partition], checkpoint["sequence_number"])


class Fate:
    """What happens to each event and write, as the seed says."""

    def __init__(self, orders: Orders) -> None:
        self._orders = orders
        self._chance = random.Random(orders.seed)

    def seconds(self) -> float:
        """How long an event takes; most take little."""
        return self._orders.slowness * self._chance.random() ** 3

    def write_seconds(self) -> float:
        """How much longer a write takes."""
        return self._orders.write_slowness * self._chance.random()

    def is_failure(self) -> bool:
        """Whether an event fails this time."""
        return self._chance.random() < self._orders.failures

    def toss(self) -> bool:
        """Heads, half of the time."""
        return self._chance.random() < 0.5
