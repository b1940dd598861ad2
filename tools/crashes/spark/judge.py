"""Comparison of published events and results after a kill and after the queries continued."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from crashes.spark.cells import Cell

Numbers = Mapping[str, int]
"""Sequence number of the last event by partition; a partition without events is absent."""


class Written(NamedTuple):
    """Event in the results, and the attempt that has written it."""

    partition: str
    number: int
    attempt: int
    batch: int

    @property
    def event(self) -> tuple[str, int]:
        """Partition and sequence number of the event."""
        return self.partition, self.number


@dataclass(frozen=True, slots=True)
class Found:
    """Contents of a query's database at one time.

    Attributes:
        written: the results.
        stored: the positions.
    """

    written: Sequence[Written]
    stored: Numbers


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome of a query.

    Attributes:
        cell: of the query.
        events: number of published events.
        lost: number of those that are not in the results.
        doubled: number of those that are there more than once.
        batches: number of batches of the killed driver with doubled events.
        problems: descriptions of broken rules.
    """

    cell: Cell
    events: int
    lost: int
    doubled: int
    batches: int
    problems: Sequence[str]


def judged(cell: Cell, killed: Found, begin: Numbers, ended: Found, published: Numbers) -> Outcome:
    """Compare what was published with the results.

    Args:
        cell: of the query.
        killed: contents of the database after the kill.
        begin: the last events before the position where the second driver had to begin.
        ended: contents of the database when the second driver had read everything.
        published: the last events of the hub.
    """
    times = Counter(one.event for one in ended.written)
    expected = set(events_of(published))
    lost = expected - times.keys()
    doubled = {event for event, count in times.items() if count > 1}
    batches = {one.batch for one in ended.written if one.attempt == 0 and one.event in doubled}
    problems = {
        f"{len(lost)} events are lost": lost,
        f"{len(times.keys() - expected)} events were never published": times.keys() - expected,
        "an event is there three times": [event for event, count in times.items() if count > 2],
        "other events are doubled than those behind the begin": doubled
        ^ set(repeated(cell, killed, begin)),
        f"{len(batches)} batches are doubled": cell.is_bounded and len(batches) > 1,
        "a position has passed the results": set(events_of(killed.stored))
        - {one.event for one in killed.written},
        f"the positions are {ended.stored}, the hub ends at {published}": ended.stored != published,
    }
    told = [f"{cell}: {problem}" for problem, found in problems.items() if found]
    return Outcome(cell, len(expected), len(lost), len(doubled), len(batches), told)


def events_of(last: Numbers) -> list[tuple[str, int]]:
    """Return all events up to these."""
    return [(one, number) for one, end in last.items() for number in range(end + 1)]


def repeated(cell: Cell, killed: Found, begin: Numbers) -> list[tuple[str, int]]:
    """Return the events that the second driver has to read although they were written."""
    if cell.route == "exactly once":
        return []
    events = [one.event for one in killed.written]
    return [(one, number) for one, number in events if number > begin.get(one, -1)]
