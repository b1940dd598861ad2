"""Hub of a transport that answers from memory, for the rules of what is asked and read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from azure.eventhub import EventData

from eventhub_checkpoints.receive import PartitionProperties, ReadSettings
from eventhub_checkpoints.receive.address import Address, HubProperties, HubQueries, Stream
from eventhub_checkpoints.receive.amqp.events import columns_of
from eventhub_checkpoints.receive.columns import Columns, Text

NEWEST = datetime(2026, 11, 21, 10, tzinfo=UTC)


def held(partition_id: str, first: int, following: int) -> PartitionProperties:
    """Return properties of a partition whose newest event is of `NEWEST`."""
    offset = f"of {following - 1}" if following else "-1"
    return PartitionProperties(partition_id, first, following, offset, NEWEST)


class _Queries(HubQueries):
    def __init__(self, hub: "MemoryHub") -> None:
        self._hub = hub

    def ask(
        self, partition_ids: Sequence[str], timeout: float
    ) -> tuple[HubProperties, dict[str, PartitionProperties]]:
        self._hub.asked.append(([*partition_ids], timeout))
        partitions = self._hub.partitions
        found = {id_: partitions[id_] for id_ in partition_ids if id_ in partitions}
        return HubProperties([*partitions], None), found

    def close(self) -> None:
        """Nothing is open."""


class _Stream(Stream):
    """Delivers the events of a range at once, and then says that it has reached the end."""

    def __init__(self, offsets: Mapping[int, Text | None], until: int) -> None:
        self._offsets, self._until, self._reached = offsets, until, 0

    @property
    def reached(self) -> int:
        return self._reached

    def next(self, timeout: float) -> Columns | None:
        events = []
        for number in self._offsets:
            event = EventData(b"")
            event.raw_amqp_message.annotations = {b"x-opt-sequence-number": number}
            events.append(event)
        columns = columns_of(events)
        columns.offsets = [*self._offsets.values()]
        self._offsets, self._reached = {}, self._until
        return columns

    def close(self) -> None:
        """Nothing is open."""


@dataclass
class MemoryHub(Address):
    """A hub in memory.

    Attributes:
        partitions: what is held, by partition id.
        firsts: the first event at an offset or time, by partition; where it is None, none arrives.
        offsets: of the events that can be read, by partition and sequence number.
        asked: queries for properties: the partitions, and the time limit.
        looked_up: queries for first events: partition, position, inclusive, and the time limit.
        opened: streams: partition, begin, end, and settings.
    """

    partitions: dict[str, PartitionProperties]
    firsts: Mapping[str, int | None] = field(default_factory=dict)
    offsets: Mapping[str, Mapping[int, Text | None]] = field(default_factory=dict)
    asked: list[Any] = field(default_factory=list)
    looked_up: list[Any] = field(default_factory=list)
    opened: list[Any] = field(default_factory=list)
    fully_qualified_namespace = "ns"
    eventhub_name = "orders"
    consumer_group = "billing"

    def open_queries(self) -> HubQueries:
        return _Queries(self)

    def ask_first(
        self, partition_id: str, start: str | datetime, inclusive: bool, timeout: float
    ) -> int | None:
        self.looked_up.append((partition_id, start, inclusive, timeout))
        return self.firsts[partition_id]

    def open_stream(
        self, partition_id: str, start: int, until: int, settings: ReadSettings
    ) -> Stream:
        self.opened.append((partition_id, start, until, settings))
        offsets = self.offsets.get(partition_id, {})
        return _Stream({n: offsets[n] for n in range(start, until) if n in offsets}, until)


def hub_of(*partitions: PartitionProperties, **firsts: int | None) -> MemoryHub:
    """Return a hub with these partitions, and the first events in them as `p0=...`."""
    by_id = {id_.removeprefix("p"): number for id_, number in firsts.items()}
    return MemoryHub({each.partition_id: each for each in partitions}, by_id)
