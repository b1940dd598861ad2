"""Comparison of the rows that the target must have with those that it has."""

from collections import Counter
from collections.abc import Iterable, Set
from dataclasses import dataclass, fields

from eventhub_checkpoints.localhub import LocalHub
from eventhub_checkpoints.receive import HubAddress, OffsetRange
from eventhub_checkpoints.receive.batches import read_range
from eventhub_checkpoints.spark.sink.keys import EVENT_KEY


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of the events.

    Attributes:
        events: in the source.
        rows: that the query must have sent.
        sent: in the target, copies included.
        lost: rows that are not in the target.
        copies: in the target beyond the first of each key.
        kept: copies that `deduplicate` has kept.
        dropped: rows that `deduplicate` has dropped altogether.
        wrong: rows that the query must not have sent, such as of a total in which an event is
            missing or is counted twice; or two rows with one key.
    """

    events: int
    rows: int
    sent: int
    lost: int
    copies: int
    kept: int
    dropped: int
    wrong: int

    @property
    def problems(self) -> list[str]:
        """Return descriptions of broken rules; copies in the target are none."""
        told = {
            f"{self.lost} rows are lost": self.lost,
            f"deduplicate has kept {self.kept} copies": self.kept,
            f"deduplicate has dropped {self.dropped} rows that are no copies": self.dropped,
            f"{self.wrong} rows are wrong": self.wrong,
        }
        return [problem for problem, count in told.items() if count]

    def counts(self) -> list[str]:
        """Return all counts, in the order of `COUNTS`."""
        return [str(getattr(self, name)) for name in COUNTS]


COUNTS = tuple(each.name for each in fields(Outcome))


def sent_events(hub: LocalHub, name: str) -> list[tuple[str, str]]:
    """Return body and key of each event of a hub."""
    address = HubAddress.from_connection_string(hub.connection_string(name))
    ends = {
        partition: hub.partition_properties(name, partition).last_sequence_number + 1
        for partition in hub.partition_ids(name)
    }
    return [
        (row["body"].decode(), dict(row["properties"]).get(EVENT_KEY, ""))
        for partition, end in ends.items()
        if end
        for batch in read_range(address, OffsetRange(partition, 0, end))
        for row in batch.to_pylist()
    ]


def judged(
    events: int,
    expected: Set[str],
    sent: list[tuple[str, str]],
    deduplicated: Iterable[str],
) -> Outcome:
    """Compare the rows that the target must have with those that it has."""
    bodies = {body for body, _ in sent}
    keys: dict[str, set[str]] = {}
    for body, key in sent:
        keys.setdefault(key, set()).add(body)
    kept = Counter(deduplicated)
    return Outcome(
        events=events,
        rows=len(expected),
        sent=len(sent),
        lost=len(expected - bodies),
        copies=len(sent) - len(bodies),
        kept=sum(count - 1 for count in kept.values()),
        dropped=len(bodies - kept.keys()),
        wrong=len(bodies - expected) + sum(len(each) > 1 for each in keys.values()),
    )
