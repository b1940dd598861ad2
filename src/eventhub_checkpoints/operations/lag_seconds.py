"""Lag in seconds: the age of the first event of a partition that is not processed.

A store does not keep the time of events, so that event is read from the hub.
"""

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from eventhub_checkpoints.errors import HubUnavailableError
from eventhub_checkpoints.operations.lag import GroupLag, PartitionLag
from eventhub_checkpoints.receive.address import Address, checked_group
from eventhub_checkpoints.receive.amqp.address import HubAddress
from eventhub_checkpoints.receive.hub import ask_each
from eventhub_checkpoints.receive.ranges import OPERATION_TIMEOUT, ReadSettings

ONE_EVENT = ReadSettings(prefetch=1, receive_path="public")
"""Settings for reading one event: the fast path prepares for many."""


def readable(sample: GroupLag, reading_group: str) -> list[PartitionLag]:
    """Return the partitions with lag whose first unprocessed event can be read.

    Consumers with a checkpoint store receive with an owner level, and while one does, the service
    refuses a receiver without one in the same consumer group. One with an owner level would
    disconnect the consumer.

    Args:
        sample: of the group.
        reading_group: consumer group that reads the events.

    Source: Event Hubs documentation, "Features and terminology", on epochs; azure-eventhub 5.15.1,
    `_eventprocessor/event_processor.py`: the owner level is 0 where there is a checkpoint store.
    """
    is_own = reading_group.casefold() == sample.scope.consumer_group.casefold()
    return [
        position
        for position in sample.partitions
        if position.lag and not (is_own and position.owner_id)
    ]


def with_seconds(sample: GroupLag, enqueued: Mapping[str, float]) -> GroupLag:
    """Add the lag in seconds to a sample.

    Args:
        sample: of the group.
        enqueued: when the first unprocessed event was enqueued, in seconds since the epoch, by
            partition id. The lag in seconds of other partitions with lag stays unknown.
    """

    def seconds(position: PartitionLag) -> float | None:
        if position.lag == 0:
            return 0.0
        time_ = enqueued.get(position.partition_id)
        return None if time_ is None else max(0.0, sample.time - time_)

    return replace(
        sample,
        partitions=[
            replace(position, lag_seconds=seconds(position)) for position in sample.partitions
        ],
    )


@dataclass(frozen=True, slots=True)
class KnownEvent:
    """First unprocessed event of a partition, as it was read.

    Attributes:
        checkpoint: the checkpoint before it.
        number: lowest sequence number that it could have.
        last: newest event at that time.
        enqueued: in seconds since the epoch.
    """

    checkpoint: int | None
    number: int
    last: int
    enqueued: float

    def is_that_of(self, position: PartitionLag) -> bool:
        """Return whether it is still the first unprocessed event.

        It does not change until the checkpoint moves, the event expires, or the hub is re-created:
        its numbers then begin again.
        """
        return (
            (self.checkpoint, self.number) == (position.checkpoint, position.first_unprocessed)
        ) and self.last <= position.last


class EnqueuedTimes:
    """Times of the first unprocessed events of a group; each event is read once."""

    def __init__(self) -> None:
        self._known: dict[str, KnownEvent] = {}

    def add_to(
        self, sample: GroupLag, hub: HubAddress, through: str | None, timeout: float
    ) -> GroupLag:
        """Add the lag in seconds to a sample, where the events can be read.

        Args:
            sample: of the group.
            hub: as read by the group.
            through: consumer group that reads the events; None: the group itself.
            timeout: see `read`.

        Raises:
            ConfigurationError, HubUnavailableError: see `read`.
        """
        name = checked_group("consumer_group", through or hub.consumer_group)
        reader = replace(hub, consumer_group=name)
        return with_seconds(sample, self.read(reader, readable(sample, name), timeout))

    def read(
        self,
        hub: Address,
        positions: Collection[PartitionLag],
        timeout: float = OPERATION_TIMEOUT,
    ) -> Mapping[str, float]:
        """Return when the first unprocessed events were enqueued, by partition id.

        Args:
            hub: read by a consumer group for which the partitions are `readable`.
            positions: partitions with lag.
            timeout: seconds for everything together; the partitions are read concurrently.

        Raises:
            ConfigurationError: the hub or the consumer group does not exist, or access is refused.
            HubUnavailableError: an event did not arrive in time. What arrived is remembered.
        """
        by_id = {position.partition_id: position for position in positions}
        self._known = {
            id_: known
            for id_, known in self._known.items()
            if id_ in by_id and known.is_that_of(by_id[id_])
        }

        def ask(partition_id: str) -> None:
            position = by_id[partition_id]
            number = position.first_unprocessed
            assert number is not None
            self._known[partition_id] = KnownEvent(
                position.checkpoint,
                number,
                position.last,
                enqueued_time(hub, partition_id, number, timeout),
            )

        ask_each(
            [id_ for id_ in by_id if id_ not in self._known],
            ask,
            timeout,
            describe=lambda silent: f"the first unprocessed event of partition {silent} of {hub}",
        )
        return self.known

    @property
    def known(self) -> Mapping[str, float]:
        """Return the times that are known, by partition id."""
        return {id_: known.enqueued for id_, known in self._known.items()}


def enqueued_time(hub: Address, partition_id: str, number: int, timeout: float) -> float:
    """Return when the first event from a sequence number on was enqueued, in seconds.

    Raises:
        ConfigurationError: the hub or the consumer group does not exist, or access is refused.
        HubUnavailableError: no event arrived within `timeout` (s).
    """
    deadline = time.monotonic() + timeout
    with hub.open_stream(partition_id, number, number + 1, ONE_EVENT) as stream:
        while columns := stream.next(max(0.0, deadline - time.monotonic())):
            for delivered, enqueued in zip(columns.numbers, columns.enqueued, strict=True):
                if delivered >= number and enqueued is not None:
                    return enqueued / 1000
    raise HubUnavailableError(
        f"partition {partition_id} of {hub} delivered no event from sequence number {number} on "
        f"within {timeout:g} s; does consumer group {hub.consumer_group!r} exist?"
    )
