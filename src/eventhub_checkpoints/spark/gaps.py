"""Report of the events that a job at given positions would not read.

Source: for such positions the JVM connector only logs a warning (azure-event-hubs-spark 2.3.22,
`EventHubsSource.reportDataLoss`): it moves to the first event that is retained, and to the *end*
of a hub that was deleted and created again.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from eventhub_checkpoints._shared.arguments import with_checked_arguments
from eventhub_checkpoints._shared.settings import require_type
from eventhub_checkpoints.receive.address import PartitionProperties
from eventhub_checkpoints.receive.position import EventPosition
from eventhub_checkpoints.receive.ranges import OPERATION_TIMEOUT
from eventhub_checkpoints.spark.hub import Hub, ask_properties, scope_of
from eventhub_checkpoints.spark.positions import HubPositions

State = Literal["ok", "expired", "ahead", "unknown", "missing"]

MEANINGS: Mapping[State, str] = {
    "expired": "the hub no longer retains the first requested events",
    "ahead": "the position is after the end: the hub was probably deleted and created again",
    "unknown": "the hub has no such partition",
    "missing": "no position for the partition; the JVM connector would begin at its end",
}

COLUMNS = ("partition", "begins at", "hub holds", "state", "events lost")


@dataclass(frozen=True, slots=True)
class PartitionGap:
    """Gap of one partition.

    Attributes:
        partition_id: the partition.
        position: where reading begins; None if no position names the partition.
        properties: what the hub holds; None if it has no such partition.
        state: `"ok"`; `"expired"`: the first requested events are no longer retained; `"ahead"`:
            the position is after the end; `"unknown"`: the hub has no such partition; `"missing"`:
            there is no position for this partition.
        lost: number of events that are not read: the expired ones, or all that a missing partition
            holds; None if they cannot be counted.
    """

    partition_id: str
    position: EventPosition | None
    properties: PartitionProperties | None
    state: State
    lost: int | None

    @property
    def cells(self) -> tuple[str, ...]:
        """Cells of the partition's row in the table."""
        lost = "cannot be known" if self.lost is None else str(self.lost)
        begin = "-" if self.position is None else str(self.position)
        properties = self.properties
        if properties is None:
            held = "-"
        elif properties.is_empty:
            held = f"nothing, next is {properties.next_sequence_number}"
        else:
            held = f"{properties.first_sequence_number} to {properties.next_sequence_number - 1}"
        return (self.partition_id, begin, held, self.state, lost)


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
        return tuple(gap for gap in self.partitions if gap.state != "ok")

    @property
    def lost(self) -> int:
        """Number of lost events, as far as they can be counted."""
        return sum(gap.lost or 0 for gap in self.partitions)

    def __str__(self) -> str:
        rows = [COLUMNS, *(gap.cells for gap in self.partitions)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        total = len(self.partitions)
        lines = [f"hub {self.eventhub_name}: {len(self.gaps)} of {total} partitions have gaps"]
        for row in rows:
            cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            lines.append("  ".join(cells).rstrip())
        states = dict.fromkeys(gap.state for gap in self.gaps)
        return "\n".join([*lines, *(f"{state}: {MEANINGS[state]}" for state in states)])


@with_checked_arguments
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
    by_id = positions.positions if isinstance(positions, HubPositions) else positions
    expected = "starting_positions(...), or a dict by partition id"
    require_type("positions", by_id, isinstance(by_id, Mapping), expected)
    by_partition = {
        partition: position
        if isinstance(position, EventPosition)
        else EventPosition.from_sequence_number(position)
        for partition, position in by_id.items()
    }
    return compare(scope_of(hub).eventhub_name, by_partition, ask_properties(hub, timeout))


def compare(
    eventhub_name: str,
    positions: Mapping[str, EventPosition],
    properties: Mapping[str, PartitionProperties],
) -> GapReport:
    """Return the report on positions for a hub whose properties are known."""
    gaps = []
    for id_ in sorted(positions.keys() | properties.keys(), key=int):
        position, partition = positions.get(id_), properties.get(id_)
        state, lost = _state_and_loss(position, partition)
        gaps.append(PartitionGap(id_, position, partition, state, lost))
    return GapReport(eventhub_name, tuple(gaps))


def _state_and_loss(
    position: EventPosition | None, properties: PartitionProperties | None
) -> tuple[State, int | None]:
    """Return the state of a partition, and the number of lost events."""
    if properties is None:
        return "unknown", None
    first, following = properties.first_sequence_number, properties.next_sequence_number
    if position is None:
        return "missing", following - first
    number = position.sequence_number
    if number is None or first <= number <= following:
        return "ok", 0
    return ("expired", first - number) if number < first else ("ahead", None)
