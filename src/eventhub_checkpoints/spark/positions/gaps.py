"""Report of the events that a job at given positions would not read.

Source: for such positions the JVM connector only logs a warning (azure-event-hubs-spark 2.3.22,
`EventHubsSource.reportDataLoss`): it moves to the first event that is retained, and to the *end*
of a hub that was deleted and created again.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from eventhub_checkpoints.receive.address import PartitionProperties
from eventhub_checkpoints.receive.position import EventPosition
from eventhub_checkpoints.receive.ranges import OPERATION_TIMEOUT
from eventhub_checkpoints.spark.given import require_kind
from eventhub_checkpoints.spark.positions.hub_positions import HubPositions
from eventhub_checkpoints.spark.positions.hubs import Hub, ask_properties, name_of

State = Literal["ok", "expired", "ahead", "unknown", "missing"]

MEANINGS: Mapping[State, str] = {
    "expired": "the hub's retention has dropped the first events that are wanted",
    "ahead": "the position lies behind the end: the hub was probably deleted and created again",
    "unknown": "the hub has no such partition",
    "missing": "no position names the partition; the JVM connector would begin at its end",
}

COLUMNS = ("partition", "begins at", "hub holds", "state", "events lost")


@dataclass(frozen=True, slots=True)
class PartitionGap:
    """Gap of one partition.

    Attributes:
        partition_id: the partition.
        wanted: where reading begins; None if no position names the partition.
        found: what the hub holds; None if it has no such partition.
        state: `"ok"`; `"expired"`: the first requested events are no longer retained; `"ahead"`:
            the position is after the end; `"unknown"`: the hub has no such partition; `"missing"`:
            there is no position for this partition.
        lost: number of events that are not read: the expired ones, or all that a missing partition
            holds; None if they cannot be counted.
    """

    partition_id: str
    wanted: EventPosition | None
    found: PartitionProperties | None
    state: State
    lost: int | None

    @property
    def cells(self) -> tuple[str, ...]:
        """Cells of the partition's row in the table."""
        lost = "cannot be known" if self.lost is None else str(self.lost)
        begin = "-" if self.wanted is None else str(self.wanted)
        return (self.partition_id, begin, held(self.found), self.state, lost)


@dataclass(frozen=True, slots=True)
class GapReport:
    """Comparison of positions with a hub; its `str` is a table.

    Attributes:
        eventhub_name: the hub.
        partitions: every partition of the positions or of the hub, in numeric order.
    """

    eventhub_name: str
    partitions: tuple[PartitionGap, ...]

    @property
    def gaps(self) -> tuple[PartitionGap, ...]:
        """Partitions with a gap."""
        return tuple(one for one in self.partitions if one.state != "ok")

    @property
    def lost(self) -> int:
        """Number of lost events, as far as they can be counted."""
        return sum(one.lost or 0 for one in self.partitions)

    def __str__(self) -> str:
        return "\n".join(lines(self))


def gap_report(
    positions: HubPositions | Mapping[str, EventPosition | int],
    hub: Hub,
    *,
    timeout: float = OPERATION_TIMEOUT,
) -> GapReport:
    """Compare positions with the events that a hub holds at this moment.

    A time or a bare offset is never a gap: the hub resolves it to an event that it holds.

    Args:
        positions: the result of `starting_positions`; or a dict by partition id, in which a number
            is the sequence number of the last committed event, as `parse_progress` returns it.
        hub: a connection string, a `HubAddress` or an `EventHubConsumerClient` (sync).
        timeout: seconds for the request to the hub.

    Raises:
        ConfigurationError: `hub` is not a hub, or the namespace has no hub of this name.
        HubUnavailableError: the hub did not answer in time.
    """
    given = positions.positions if isinstance(positions, HubPositions) else positions
    expected = "starting_positions(...), or a dict by partition id"
    require_kind("positions", given, isinstance(given, Mapping), expected)
    wanted = {one: as_position(position) for one, position in given.items()}
    return compare(name_of(hub), wanted, ask_properties(hub, timeout))


def as_position(position: EventPosition | int) -> EventPosition:
    """Return the position, or the one after the last committed event."""
    if isinstance(position, EventPosition):
        return position
    return EventPosition.from_sequence_number(position)


def compare(
    eventhub_name: str,
    wanted: Mapping[str, EventPosition],
    found: Mapping[str, PartitionProperties],
) -> GapReport:
    """Return the report on positions for a hub whose properties are known."""
    partitions = sorted(wanted.keys() | found.keys(), key=int)
    gaps = (gap(one, wanted.get(one), found.get(one)) for one in partitions)
    return GapReport(eventhub_name, tuple(gaps))


def gap(
    partition_id: str, wanted: EventPosition | None, found: PartitionProperties | None
) -> PartitionGap:
    """Return the gap of one partition."""
    state, lost = judged(wanted, found)
    return PartitionGap(partition_id, wanted, found, state, lost)


def judged(
    wanted: EventPosition | None, found: PartitionProperties | None
) -> tuple[State, int | None]:
    """Return the state of a partition, and the number of lost events."""
    if found is None:
        return "unknown", None
    first, following = found.first_sequence_number, found.next_sequence_number
    if wanted is None:
        return "missing", following - first
    number = wanted.sequence_number
    if number is None or first <= number <= following:
        return "ok", 0
    return ("expired", first - number) if number < first else ("ahead", None)


def held(found: PartitionProperties | None) -> str:
    """Return the sequence numbers of the retained events, as text."""
    if found is None:
        return "-"
    if found.is_empty:
        return f"nothing, next is {found.next_sequence_number}"
    return f"{found.first_sequence_number} to {found.next_sequence_number - 1}"


def lines(report: GapReport) -> Iterator[str]:
    """Yield the lines of the table, and the meaning of the states in it."""
    rows = [COLUMNS, *(one.cells for one in report.partitions)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    states = dict.fromkeys(one.state for one in report.gaps)
    yield f"hub {report.eventhub_name}: {len(report.gaps)} of {len(rows) - 1} partitions have gaps"
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield "  ".join(cells).rstrip()
    yield from (f"{state}: {MEANINGS[state]}" for state in states)
