"""What may be found after a kill and after the queries went on, and what may not."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from spark_crashes.cells import Cell

Numbers = Mapping[str, int]
"""The sequence number of the last event by partition; a partition without events is absent."""


class Written(NamedTuple):
    """An event in the results, and who has written it."""

    partition: str
    number: int
    attempt: int
    batch: int

    @property
    def event(self) -> tuple[str, int]:
        """Which event of the hub."""
        return self.partition, self.number


@dataclass(frozen=True, slots=True)
class Found:
    """What one look at a query's database has found.

    Attributes:
        written: the results.
        stored: the positions.
    """

    written: Sequence[Written]
    stored: Numbers


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a query.

    Attributes:
        cell: which one.
        events: how many were published.
        lost: how many of them are not in the results.
        doubled: how many are there more than once.
        batches: of the killed driver, that the doubled ones came in.
        problems: what must not be, in words.
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
        cell: what was tried.
        killed: what was there after the kill.
        begin: the last events before the place where the second driver had to begin.
        ended: what was there when the second driver had read everything.
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
    """All events up to these."""
    return [(one, number) for one, end in last.items() for number in range(end + 1)]


def repeated(cell: Cell, killed: Found, begin: Numbers) -> list[tuple[str, int]]:
    """The events that the second driver has to read although they were written."""
    if cell.route == "exactly once":
        return []
    events = [one.event for one in killed.written]
    return [(one, number) for one, number in events if number > begin.get(one, -1)]
