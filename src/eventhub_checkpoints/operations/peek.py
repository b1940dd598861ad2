"""Events around a position: the one that a partition hangs on, or those at a time.

A reader here has no owner level, so it never disconnects a consumer. The hub refuses such a reader
in a consumer group whose consumers have an owner level, as those with a checkpoint store do; then
the events are read through `$Default`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TypeVar

from azure.eventhub import CheckpointStore

from eventhub_checkpoints._shared.client import is_stolen
from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints._shared.settings import is_count, require
from eventhub_checkpoints.errors import (
    ConfigurationError,
    DataLossError,
    HubUnavailableError,
)
from eventhub_checkpoints.operations.groups import in_order
from eventhub_checkpoints.operations.positions import Position
from eventhub_checkpoints.receive.address import (
    DEFAULT_CONSUMER_GROUP,
    Address,
    PartitionProperties,
    checked_group,
)
from eventhub_checkpoints.receive.amqp.address import HubAddress
from eventhub_checkpoints.receive.columns import Columns, Text, TextMaps
from eventhub_checkpoints.receive.hub import (
    ask_each,
    first_event,
    list_partitions,
    no_event_at,
    partition_properties,
)
from eventhub_checkpoints.receive.position import EventPosition
from eventhub_checkpoints.receive.ranges import (
    OPERATION_TIMEOUT,
    PREFETCH,
    OffsetRange,
    ReadSettings,
)
from eventhub_checkpoints.receive.reader import RangeReader

SHARES = 4
"""A silent partition costs two waits and two queries; together they take the time limit."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PeekedEvent:
    """Event of a partition, with what its producer and the service have set.

    Attributes:
        offset: an opaque string; None where the transport has none.
        enqueued_time: UTC; None where there is none.
        partition_key: None if it was sent without one.
        properties: application properties, each value as a string.
        system_properties: other values set by the service or the producer's client.
    """

    partition_id: str
    sequence_number: int
    offset: str | None
    enqueued_time: datetime | None
    partition_key: str | None
    body: bytes
    properties: Mapping[str, str]
    system_properties: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class PositionAtTime:
    """First event of a partition that was enqueued at a time or later.

    Attributes:
        sequence_number, offset, enqueued_time: of that event; None if no event is retained that
            was enqueued since then.
        next_sequence_number: of the next event to be enqueued.
    """

    partition_id: str
    sequence_number: int | None
    offset: str | None
    enqueued_time: datetime | None
    next_sequence_number: int


def peek(
    store: CheckpointStore | None,
    hub: HubAddress,
    partition_id: str,
    position: EventPosition | None = None,
    *,
    count: int = 1,
    before: int = 0,
    through: str | None = None,
    timeout: float = OPERATION_TIMEOUT,
) -> list[PeekedEvent]:
    """Read events around a position, without an effect on any consumer.

    Args:
        store: any synchronous checkpoint store; None is enough with a position.
        hub: the hub; its consumer group is the one whose checkpoint is read.
        partition_id: which partition.
        position: of the first event; None: the event after the group's checkpoint.
        count: number of events from the position on.
        before: number of events before the position, in addition.
        through: consumer group to read the events through. Default: that of `hub`, and `$Default`
            if its consumers have an owner level.
        timeout: seconds for each query, and for reading the events.

    Raises:
        ConfigurationError: there is no such partition, it is empty, or nothing is at the position.
        DataLossError: the event at the position has expired.
        HubUnavailableError: the hub did not answer, or refused the reader, within `timeout`.
    """
    require("count", count, is_count(count), "a whole number, 1 or more")
    require("before", before, before == 0 or is_count(before), "a whole number, 0 or more")
    properties = properties_of(hub, partition_id, timeout)
    where = f"partition {partition_id} of {hub}"
    if properties.is_empty and not properties.next_sequence_number:
        raise ConfigurationError(f"{where} is empty: no event was ever sent to it")
    if properties.is_empty:
        raise ConfigurationError(
            f"{where} is empty: its events up to {properties.next_sequence_number - 1} have expired"
        )
    if position is None:
        if store is None:
            raise ConfigurationError("the position is None; expected a store that has a checkpoint")
        position = after_checkpoint(store, hub, properties, is_end_allowed=before > 0)

    def read(address: HubAddress) -> list[PeekedEvent]:
        start = first_number(address, properties, position, timeout)
        check_retained(where, start, properties, is_end_allowed=before > 0)
        first = max(start - before, properties.first_sequence_number)
        until = min(start + count, properties.next_sequence_number)
        return read_events(address, OffsetRange(partition_id, first, until), timeout)

    return through_some_group(hub, through, read)


def newest_events(
    hub: HubAddress,
    partition_id: str,
    *,
    count: int,
    known: int | None = None,
    through: str | None = None,
    timeout: float = OPERATION_TIMEOUT,
) -> list[PeekedEvent] | None:
    """Read the newest events of a partition; None if the newest one is known already.

    Args:
        hub: the hub.
        partition_id: which partition.
        count: number of events.
        known: sequence number of the newest one of an earlier call.
        through: see `peek`.
        timeout: seconds for each query, and for reading the events.

    Raises:
        ConfigurationError: there is no such partition.
        HubUnavailableError: the hub did not answer, or refused the reader, within `timeout`.
    """
    require("count", count, is_count(count), "a whole number, 1 or more")
    properties = properties_of(hub, partition_id, timeout)
    end = properties.next_sequence_number
    if known == end - 1:
        return None
    if properties.is_empty:
        return []
    offsets = OffsetRange(partition_id, max(properties.first_sequence_number, end - count), end)
    return through_some_group(hub, through, lambda address: read_events(address, offsets, timeout))


def positions_at(
    hub: HubAddress,
    time: datetime,
    *,
    through: str | None = None,
    timeout: float = OPERATION_TIMEOUT,
) -> list[PositionAtTime]:
    """Return the first event of each partition that was enqueued at a time or later.

    Args:
        hub: the hub.
        time: with a time zone.
        through: see `peek`.
        timeout: seconds for the queries, and again for reading the events.

    Raises:
        ConfigurationError: the time has no time zone, or the namespace has no such hub.
        HubUnavailableError: the hub did not answer in time, or refused the readers.
    """
    moment = EventPosition.from_enqueued_time(time).enqueued_time
    assert moment is not None
    properties = partition_properties(hub, timeout=timeout)

    def position(address: HubAddress, partition_id: str) -> PositionAtTime:
        here = properties[partition_id]
        if not has_event_since(here, moment):
            return PositionAtTime(partition_id, None, None, None, here.next_sequence_number)
        received = address.read_first(partition_id, moment, True, timeout / 2)
        if received is None:
            raise no_event_at(address, partition_id, moment, timeout / 2)
        event = next(events_of(partition_id, received))
        return PositionAtTime(
            partition_id,
            event.sequence_number,
            event.offset,
            event.enqueued_time,
            here.next_sequence_number,
        )

    def read(address: HubAddress) -> list[PositionAtTime]:
        by_partition = ask_each(
            in_order(properties),
            lambda partition_id: position(address, partition_id),
            timeout,
            describe=lambda silent: f"partition {silent} of {hub}",
        )
        return list(by_partition.values())

    return through_some_group(hub, through, read)


def has_event_since(properties: PartitionProperties, moment: datetime) -> bool:
    """Return whether a retained event was enqueued at a time or later."""
    newest = properties.last_enqueued_time
    return not properties.is_empty and (newest is None or newest >= moment)


def properties_of(hub: Address, partition_id: str, timeout: float) -> PartitionProperties:
    """Return the properties of a partition.

    Raises:
        ConfigurationError: there is no such partition; the message names those that exist.
    """
    ids = list_partitions(hub, timeout=timeout)
    if partition_id not in ids:
        known = ids[0] if len(ids) == 1 else f"{ids[0]} to {ids[-1]}"
        raise ConfigurationError(f"{hub} has no partition {quoted(partition_id)}; it has {known}")
    return partition_properties(hub, [partition_id], timeout=timeout)[partition_id]


def after_checkpoint(
    store: CheckpointStore, hub: Address, properties: PartitionProperties, *, is_end_allowed: bool
) -> EventPosition:
    """Return the position after the group's checkpoint.

    Args:
        store: any synchronous checkpoint store.
        hub: the hub and the group.
        properties: of the partition.
        is_end_allowed: whether the position may be that of the next event to be enqueued.

    Raises:
        ConfigurationError: there is no checkpoint, or no event after it.
    """
    scope, id_ = hub.scope(), properties.partition_id
    begin, last = properties.first_sequence_number, properties.next_sequence_number - 1
    rows = {row["partition_id"]: row for row in store.list_checkpoints(*scope)}
    if id_ not in rows:
        raise ConfigurationError(
            f"partition {id_} of {scope} has no checkpoint; pass a position, for example its first "
            f"retained sequence number, {begin}"
        )
    row = rows[id_]
    number = row.get("sequence_number")
    if Position.of(row).is_closed:
        raise ConfigurationError(
            f"the checkpoint of partition {id_} of {scope} was moved to another store; name that "
            f"store, or pass a position, for example its first retained sequence number, {begin}"
        )
    if number is not None and number > last:
        raise ConfigurationError(
            f"the checkpoint {number} of partition {id_} of {scope} is ahead of the newest event, "
            f"{last}: was the hub created anew?"
        )
    if number is not None and number < begin - 1:
        raise DataLossError(
            id_,
            number + 1,
            begin,
            f"partition {id_} of {scope}: events {number + 1} to {begin - 1} after the checkpoint "
            f"have expired; the first retained one is {begin}",
        )
    offset = row.get("offset", "")
    is_at_end = number == last or (number is None and offset == properties.last_enqueued_offset)
    if is_at_end and not is_end_allowed:
        raise ConfigurationError(
            f"partition {id_} of {scope} has no event after its checkpoint, {last}: all are "
            "processed; ask for events before it"
        )
    if number is not None:
        return EventPosition.from_sequence_number(number + 1, inclusive=True)
    return EventPosition.from_end_of_stream() if is_at_end else EventPosition.from_offset(offset)


def first_number(
    address: Address, properties: PartitionProperties, position: EventPosition, timeout: float
) -> int:
    """Return the sequence number of the first event at a position.

    Raises:
        ConfigurationError: no event was enqueued at the time or later.
        HubUnavailableError: the hub did not deliver it in time, or refused the reader.
    """
    if position.sequence_number is not None:
        return position.sequence_number
    if position.is_start_of_stream:
        return properties.first_sequence_number
    if position.is_end_of_stream:
        return properties.next_sequence_number
    id_, moment = properties.partition_id, position.enqueued_time
    if moment is None:
        assert position.offset is not None
        return first_event(address, id_, position.offset, position.inclusive, timeout)
    if not has_event_since(properties, moment):
        newest = properties.last_enqueued_time
        raise ConfigurationError(
            f"partition {id_} of {address} has no event that was enqueued at {moment.isoformat()} "
            f"or later; the newest, {properties.next_sequence_number - 1}, is of "
            f"{newest.isoformat() if newest else 'an unknown time'}"
        )
    return first_event(address, id_, moment, True, timeout)


def check_retained(
    where: str, number: int, properties: PartitionProperties, *, is_end_allowed: bool
) -> None:
    """Check that an event is in the hub.

    Raises:
        ConfigurationError: the number is beyond the end.
        DataLossError: the event has expired.
    """
    begin, end = properties.first_sequence_number, properties.next_sequence_number
    if number < begin:
        raise DataLossError(
            properties.partition_id,
            number,
            begin,
            f"event {number} of {where} has expired; the first retained one is {begin}",
        )
    if number > end or (number == end and not is_end_allowed):
        raise ConfigurationError(
            f"{where} has no event {number}: its newest one is {end - 1}; ask for events before it"
        )


def through_some_group(hub: HubAddress, through: str | None, read: Callable[[HubAddress], T]) -> T:
    """Read through the named consumer group; by default that of the hub, then `$Default`.

    Raises:
        ConfigurationError: `through` is not the name of a consumer group.
        HubUnavailableError: every group is read with an owner level; or the hub did not answer.
    """
    if through is not None:
        checked_group("through", through)
    groups = [through or hub.consumer_group]
    if through is None and hub.consumer_group.lower() != DEFAULT_CONSUMER_GROUP.lower():
        groups.append(DEFAULT_CONSUMER_GROUP)
    for group in groups[:-1]:
        try:
            return read(replace(hub, consumer_group=group))
        except HubUnavailableError as error:
            if not is_stolen(error):
                raise
    try:
        return read(replace(hub, consumer_group=groups[-1]))
    except HubUnavailableError as error:
        if not is_stolen(error):
            raise
        raise HubUnavailableError(
            f"the consumers of {' and '.join(groups)} of {hub} have an owner level, and the hub "
            "admits no other reader beside them; name another consumer group with --through"
        ) from error


def read_events(address: Address, offsets: OffsetRange, timeout: float) -> list[PeekedEvent]:
    """Read the events of a range; those that compaction has removed are left out.

    Raises:
        DataLossError: some have expired.
        HubUnavailableError: the hub did not deliver them within `timeout` (s).
    """
    size = offsets.until_sequence_number - offsets.from_sequence_number
    settings = ReadSettings(
        prefetch=max(1, min(size, PREFETCH)),
        receiver_timeout=timeout / SHARES,
        operation_timeout=timeout / SHARES,
    )
    parts = RangeReader(address, offsets, settings).parts()
    return [event for part in parts for event in events_of(offsets.partition_id, part)]


def events_of(partition_id: str, columns: Columns) -> Iterator[PeekedEvent]:
    """Yield the events of some columns."""
    rows = zip(
        columns.numbers,
        columns.offsets,
        columns.enqueued,
        columns.partition_keys,
        columns.bodies,
        maps_of(columns.properties),
        maps_of(columns.systems),
        strict=True,
    )
    for number, offset, enqueued, key, body, properties, systems in rows:
        yield PeekedEvent(
            partition_id,
            number,
            text_of(offset),
            None if enqueued is None else datetime.fromtimestamp(enqueued / 1000, UTC),
            text_of(key),
            body,
            properties,
            systems,
        )


def maps_of(column: TextMaps) -> Sequence[dict[str, str]]:
    """Return the map of each row."""
    pairs = [
        (text_of(key) or "", text_of(value) or "")
        for key, value in zip(column.keys, column.values, strict=True)
    ]
    return [
        dict(pairs[begin:end]) for begin, end in zip(column.ends, column.ends[1:], strict=False)
    ]


def text_of(text: Text | None) -> str | None:
    """Return a string from its UTF-8 encoding; others unchanged."""
    return text.decode() if isinstance(text, bytes) else text
