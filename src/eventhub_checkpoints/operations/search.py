"""Search for events in a part of one or of all partitions, without an effect on any consumer.

A hub has no index, so a search reads every event of its range. It is bounded by events, matches and
time, and says what it has read and where it would go on.
"""

import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import partial
from itertools import chain

from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints._shared.settings import is_count, require
from eventhub_checkpoints._shared.texts import has
from eventhub_checkpoints._shared.times import before_now, parse_time
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.operations.groups import in_order
from eventhub_checkpoints.operations.peek import (
    SHARES,
    PeekedEvent,
    events_of,
    positions_at,
    properties_of,
    through_some_group,
)
from eventhub_checkpoints.receive.address import OpenStream, PartitionProperties
from eventhub_checkpoints.receive.amqp.address import HubAddress
from eventhub_checkpoints.receive.hub import partition_properties, read_each
from eventhub_checkpoints.receive.position import EventPosition, is_digits
from eventhub_checkpoints.receive.ranges import (
    OPERATION_TIMEOUT,
    PREFETCH,
    OffsetRange,
    ReadSettings,
)
from eventhub_checkpoints.receive.reader import RangeReader

KINDS = ("number", "offset", "time", "ago")
"""Kinds of positions that people name."""
MOST_READ = 10_000
"""Events that a search reads by default."""
MOST_FOUND = 50
"""Matches after which a search ends by default."""
SECONDS = 15.0
"""Seconds after which a search ends by default."""


class Ending(StrEnum):
    """Why a search ended.

    Attributes:
        NEWEST: it has read the newest event.
        READ: it has read as many events as it may.
        FOUND: it has found as many events as it may.
        TIME: its time is over.
    """

    NEWEST = "newest"
    READ = "read"
    FOUND = "found"
    TIME = "time"


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Which events are searched for; `""` means all. Letters match in any case.

    Attributes:
        text: part of the body.
        key: part of the partition key.
        name: name of a property, of the producer or of the system.
        value: part of the value of that property, or of any property if `name` is `""`.
    """

    text: str = ""
    key: str = ""
    name: str = ""
    value: str = ""

    @property
    def is_all(self) -> bool:
        """Return whether every event matches."""
        return self == EventFilter()

    def matches(self, event: PeekedEvent) -> bool:
        """Return whether an event is searched for."""
        return (
            has(event.body.decode("utf-8", "replace"), self.text)
            and has(event.partition_key or "", self.key)
            and (not (self.name or self.value) or self._has_property(event))
        )

    def looks_at(self, name: str) -> bool:
        """Return whether the value of a property is compared."""
        return not self.name or name.casefold() == self.name.casefold()

    def _has_property(self, event: PeekedEvent) -> bool:
        values = [*event.properties.items(), *event.system_properties.items()]
        return any(self.looks_at(name) and has(value, self.value) for name, value in values)


@dataclass(frozen=True, slots=True)
class Search:
    """What a search has found, and what it has read.

    Attributes:
        events: the matches, oldest first.
        first: sequence number from which it has read.
        following: the next one that it has not read.
        read: number of events that it has read; compaction may have removed others.
        size: bytes of their bodies.
        seconds: its duration.
        ending: why it ended.
    """

    events: Sequence[PeekedEvent]
    first: int
    following: int
    read: int
    size: int
    seconds: float
    ending: Ending


def search(
    hub: HubAddress,
    partition_id: str,
    chosen: EventFilter,
    *,
    start: int | None = None,
    most_read: int = MOST_READ,
    most_found: int = MOST_FOUND,
    seconds: float = SECONDS,
    through: str | None = None,
    timeout: float = OPERATION_TIMEOUT,
) -> Search:
    """Search for events of a partition.

    Args:
        hub: the hub.
        partition_id: which partition.
        chosen: which events.
        start: sequence number to begin at; the first retained event if that is later, or if it is
            None.
        most_read: events to read, at most.
        most_found: events to find, at most.
        seconds: after which the search ends.
        through: consumer group to read the events through; see `peek`.
        timeout: seconds for each query, and to wait for the next events.

    Raises:
        ConfigurationError: there is no such partition.
        HubUnavailableError: the hub did not answer, or refused the reader, within `timeout`.
    """
    require("most_read", most_read, is_count(most_read), "a whole number, 1 or more")
    require("most_found", most_found, is_count(most_found), "a whole number, 1 or more")
    begun = time.monotonic()
    properties = properties_of(hub, partition_id, timeout)
    offsets = range_of(properties, start, most_read)

    def read(address: HubAddress) -> Search:
        return search_range(
            RangeReader(address, offsets, settings_of(offsets, timeout)),
            chosen,
            properties.next_sequence_number,
            most_found,
            begun,
            begun + seconds,
        )

    return through_some_group(hub, through, read)


def search_hub(
    hub: HubAddress,
    chosen: EventFilter,
    *,
    since: datetime | None = None,
    most_read: int = MOST_READ,
    most_found: int = MOST_FOUND,
    seconds: float = SECONDS,
    through: str | None = None,
    timeout: float = OPERATION_TIMEOUT,
) -> dict[str, Search]:
    """Search for events of all partitions, by partition.

    Args:
        hub: the hub.
        chosen: which events.
        since: only events that were enqueued then or later, with a time zone; the oldest of them
            are read first. None: the newest events.
        most_read: events to read of all partitions together, each of which has the same share.
        most_found: events to find in each partition, at most.
        seconds: after which the search ends.
        through: consumer group to read the events through; see `peek`.
        timeout: seconds for each query, and to wait for the next events.

    Raises:
        ConfigurationError: the time has no time zone, or the namespace has no such hub.
        HubUnavailableError: the hub did not answer, or refused the readers, within `timeout`.
    """
    require("most_read", most_read, is_count(most_read), "a whole number, 1 or more")
    require("most_found", most_found, is_count(most_found), "a whole number, 1 or more")
    begun = time.monotonic()
    deadline = begun + seconds
    properties = partition_properties(hub, timeout=timeout)
    share = max(1, most_read // len(properties))
    if since is None:
        starts = {id_: each.next_sequence_number - share for id_, each in properties.items()}
    else:
        found = positions_at(hub, since, through=through, timeout=timeout)
        starts = {
            each.partition_id: each.next_sequence_number
            if each.sequence_number is None
            else each.sequence_number
            for each in found
        }
    ranges = {id_: range_of(each, starts[id_], share) for id_, each in properties.items()}

    def read(address: HubAddress) -> dict[str, Search]:
        def search_partition(partition_id: str, open_stream: OpenStream) -> Search:
            offsets = ranges[partition_id]
            first = offsets.from_sequence_number
            if time.monotonic() > deadline and not offsets.is_empty:
                return Search([], first, first, 0, 0, 0.0, Ending.TIME)
            reader = RangeReader(address, offsets, settings_of(offsets, timeout), open_stream)
            end = properties[partition_id].next_sequence_number
            return search_range(reader, chosen, end, most_found, begun, deadline)

        return read_each(address, in_order(ranges), search_partition, seconds + timeout)

    return through_some_group(hub, through, read)


def position_of_kind(kind: str, value: str) -> EventPosition:
    """Return the position that people name.

    Args:
        kind: one of `KINDS`.
        value: a sequence number, an offset, a time, or a duration before now; see
            `docs/reference/times.md`.

    Raises:
        ConfigurationError: there is no such kind, or the value is not one of it.
    """
    match kind:
        case "number":
            if not is_digits(value):
                raise ConfigurationError(f"the number is {quoted(value)}; expected digits")
            return EventPosition.from_sequence_number(int(value), inclusive=True)
        case "offset":
            return EventPosition.from_offset(value, inclusive=True)
        case "time":
            return EventPosition.from_enqueued_time(parse_time(value))
        case "ago":
            return EventPosition.from_enqueued_time(before_now(value))
    raise ConfigurationError(f"the position is {quoted(kind)}; expected {', '.join(KINDS)}")


def range_of(properties: PartitionProperties, start: int | None, most_read: int) -> OffsetRange:
    """Return the events that a search may read; none if it would begin after the newest one."""
    end = properties.next_sequence_number
    first = min(end, max(properties.first_sequence_number, start or 0))
    return OffsetRange(properties.partition_id, first, min(end, first + most_read))


def settings_of(offsets: OffsetRange, timeout: float) -> ReadSettings:
    """Return the settings for reading a range in which events may expire meanwhile."""
    size = offsets.until_sequence_number - offsets.from_sequence_number
    return ReadSettings(
        prefetch=max(1, min(size, PREFETCH)),
        receiver_timeout=timeout / SHARES,
        operation_timeout=timeout / SHARES,
        fail_on_data_loss=False,
    )


def search_range(
    reader: RangeReader,
    chosen: EventFilter,
    end: int,
    most_found: int,
    begun: float,
    deadline: float,
) -> Search:
    """Search for events in what a reader reads.

    Args:
        reader: of the range.
        chosen: which events.
        end: sequence number of the next event to be enqueued.
        most_found: events to find, at most.
        begun: on the clock of `time.monotonic`.
        deadline: likewise; the search ends with the first event after it.
    """
    first = following = reader.next
    found: list[PeekedEvent] = []
    read = size = 0
    ending: Ending | None = None
    with closing(reader.parts()) as parts:
        for event in chain.from_iterable(map(partial(events_of, reader.partition_id), parts)):
            read, size = read + 1, size + len(event.body)
            following = event.sequence_number + 1
            if chosen.matches(event):
                found.append(event)
            if len(found) >= most_found:
                ending = Ending.FOUND
            elif time.monotonic() > deadline:
                ending = Ending.TIME
            if ending:
                break
    if ending is None:
        following = reader.until
        ending = Ending.READ if following < end else Ending.NEWEST
    seconds = time.monotonic() - begun
    return Search(found, first, following, read, size, seconds, ending)
