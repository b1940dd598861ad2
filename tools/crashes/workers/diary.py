"""Record of one worker's sessions, events and writes in the journal; thread-safe."""

import random
import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from crashes.workers.journal import HANDS_OVER, LOSES, NOTHING, STOPS, Journal
from crashes.workers.orders import Orders

PARTITIONS = ("0", "1")
GROUP = "$default"


class UnluckyError(Exception):
    """An event could not be processed this time."""


class Claim:
    """Session of a partition.

    Attributes:
        is_announced: whether the client has announced that the partition is open; a sync client
            may deliver events before.
    """

    def __init__(self, journal: Journal, partition: str, number: int) -> None:
        self._journal = journal
        self.partition = partition
        self._number = number
        self._is_closing = False
        self.is_announced = False

    def begun(self, event: Any) -> None:
        """Record that the library tracks the event."""
        self._journal.write("begun", self.partition, self._number, event.sequence_number)

    def done(self, event: Any) -> None:
        """Record that the event is processed; the library is notified next."""
        self._journal.write("done", self.partition, self._number, event.sequence_number)

    def failed(self, event: Any) -> None:
        """Record that the event is given up for this session."""
        self._journal.write("failed", self.partition, self._number, event.sequence_number)

    def raised(self, event: Any) -> None:
        """Record that the handler raises, and may receive the event again."""
        self._journal.write("raised", self.partition, self._number, event.sequence_number)

    def closing(self, reason: Any, *, hands_over: bool = False) -> None:
        """Record that the client closes the partition, the first time."""
        if not self._is_closing:
            self._is_closing = True
            how = STOPS if reason.name == "SHUTDOWN" else HANDS_OVER if hands_over else LOSES
            self._journal.write("closing", self.partition, self._number, how)

    def uncommitted(self) -> None:
        """Record that a commit of several partitions has failed."""
        self._journal.write("uncommitted", self.partition, self._number)

    def closed(self) -> None:
        """Record that the library has ended the session."""
        self._journal.write("closed", self.partition, self._number)


class Diary:
    """Sessions of a worker, and the calls of its store."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._guard = threading.Lock()
        self._claims: dict[str, Claim] = {}
        self._counts: Counter[str] = Counter()
        self._listed: Mapping[str, int] = {}
        self._me = ""
        self._owned_by_others: dict[str, bool] = {}

    def owners(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Record for which partitions a list shows a change from this worker to another owner."""
        for row in of_group(rows):
            partition = row["partition_id"]
            is_other = row["owner_id"] not in ("", None, self._me)
            if self._owned_by_others.get(partition) != is_other:
                self._owned_by_others[partition] = is_other
                self._journal.write("other" if is_other else "own", partition)

    def releasing(self, proposals: Iterable[Mapping[str, Any]]) -> None:
        """Record that partitions are released next, so that nothing more is saved of them."""
        for row in of_group(proposals):
            if row["owner_id"] == "":
                self._journal.write("releasing", row["partition_id"])

    def won(
        self, proposals: Iterable[Mapping[str, Any]], rows: Iterable[Mapping[str, Any]]
    ) -> None:
        """Record the claims that a call has won, with the etags they replace."""
        before = {row["partition_id"]: row.get("etag") for row in of_group(proposals)}
        for row in of_group(rows):
            partition, etag = row["partition_id"], row["etag"]
            if row["owner_id"]:
                self._me = row["owner_id"]
            if etag != before[partition]:
                replaced = before[partition] or "none"
                self._journal.write("won", partition, etag=etag, before=replaced)
                if row["owner_id"] and self._owned_by_others.get(partition) is not False:
                    self._owned_by_others[partition] = False
                    self._journal.write("own", partition)

    def listing(self) -> None:
        """Record that positions are read from now on."""
        self._journal.write("listing")

    def listed(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Record the positions that were read."""
        found = {row["partition_id"]: row["sequence_number"] for row in rows}
        self._listed = {one: found.get(one, NOTHING) for one in PARTITIONS}
        for partition, number in self._listed.items():
            self._journal.write("listed", partition, 0, number)

    def open(self, partition: str, *, announces: bool) -> Claim:
        """Return the session of a partition; it begins with the first event or announcement."""
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
        """Have the next event of the partition begin another session."""
        with self._guard:
            if self._claims.get(claim.partition) is claim:
                del self._claims[claim.partition]

    def saving(self, checkpoint: Mapping[str, Any]) -> None:
        """Record that the store is called next."""
        self._note("saving", checkpoint)

    def saved(self, checkpoint: Mapping[str, Any], error: BaseException | None) -> None:
        """Record the result of the store's call."""
        if error is None:
            self._note("saved", checkpoint)
        elif type(error).__name__ == "StaleCheckpointError":
            self._note("refused", checkpoint)
        else:
            self._note("unsaved", checkpoint)

    def _note(self, what: Any, checkpoint: Mapping[str, Any]) -> None:
        partition = checkpoint["partition_id"]
        self._journal.write(what, partition, self._counts[partition], checkpoint["sequence_number"])


def of_group(rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the rows of the consumer group, without hand-over requests."""
    return [row for row in rows if row["consumer_group"].lower() == GROUP]


class Fate:
    """Outcome of each event and write, derived from the seed."""

    def __init__(self, orders: Orders) -> None:
        self._orders = orders
        self._chance = random.Random(orders.seed)

    def seconds(self) -> float:
        """Return how long an event takes; most are short."""
        return self._orders.slowness * self._chance.random() ** 3

    def write_seconds(self) -> float:
        """Return the additional duration of a write."""
        return self._orders.write_slowness * self._chance.random()

    def is_failure(self) -> bool:
        """Return whether an event fails this time."""
        return self._chance.random() < self._orders.failures

    def toss(self) -> bool:
        """Return True half of the time."""
        return self._chance.random() < 0.5
