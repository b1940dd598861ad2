"""Operations on a running hub from any thread: publish, inspect, trim, re-create."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from eventhub_checkpoints.amqp.types import CodecError
from eventhub_checkpoints.localhub.arguments import (
    check_count,
    check_properties,
    check_text,
    read_bodies,
    read_time,
)
from eventhub_checkpoints.localhub.clock import now
from eventhub_checkpoints.localhub.events import Event, make_events, read_events

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from datetime import datetime

    from eventhub_checkpoints.localhub.hubs import Hub
    from eventhub_checkpoints.localhub.log import PartitionLog
    from eventhub_checkpoints.localhub.server import Server

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PartitionProperties:
    """Properties of a partition.

    Attributes:
        partition_id: which partition.
        first_sequence_number: of the oldest retained event; of the next one if there is none.
        last_sequence_number: of the newest event ever, -1 before the first.
        last_offset: of the same event, "-1" before the first and where it is not known.
        last_enqueued_time: of the same event, in float seconds since the epoch; 0 before the first.
        is_empty: whether no event is retained.
    """

    partition_id: str
    first_sequence_number: int
    last_sequence_number: int
    last_offset: str
    last_enqueued_time: float
    is_empty: bool


@dataclass(frozen=True, slots=True)
class Receiver:
    """Receiver that is attached now.

    Attributes:
        consumer_group: as spelled by the receiver.
        partition_id: which partition it reads.
        name: its link's name.
        container_id: its connection's identifier; azure-eventhub puts its consumer's name here.
        epoch: its owner level, None without one.
        next_sequence_number: of the next event that it gets.
    """

    consumer_group: str
    partition_id: str
    name: str
    container_id: str
    epoch: int | None
    next_sequence_number: int


class Operations(ABC):
    """Operations on a running hub. Every method may be called from any thread.

    A hub or partition that does not exist raises `LookupError`, an invalid argument `ValueError`,
    and a hub that is not running `RuntimeError`.
    """

    @abstractmethod
    def _call(self, function: Callable[[Server], T]) -> T:
        """Run a function on the server's thread."""

    def publish(
        self,
        hub: str,
        partition_id: str,
        events: Iterable[bytes | str],
        *,
        properties: Mapping[str, Any] | None = None,
        partition_key: str | None = None,
        enqueued_time: float | datetime | None = None,
    ) -> range:
        """Append events to a partition, without a client; return their sequence numbers.

        Args:
            hub: the hub's name.
            partition_id: for instance "0".
            events: the bodies; strings are stored as UTF-8.
            properties: application properties of every event.
            partition_key: the key of every event; it does not choose the partition.
            enqueued_time: float seconds since the epoch, or an aware datetime; now if None.
                An event is never older than the one before it.
        """
        check_properties(properties)
        if partition_key is not None:
            check_text("partition_key", partition_key)
        made = make_events(read_bodies(events), properties, partition_key)
        return self._append(hub, partition_id, made, enqueued_time)

    def publish_messages(
        self,
        hub: str,
        partition_id: str,
        messages: Iterable[bytes],
        *,
        enqueued_time: float | datetime | None = None,
    ) -> range:
        """Append messages that are already encoded in the form in which AMQP producers send them.

        Args:
            hub: the hub's name.
            partition_id: for instance "0".
            messages: each the payload of one transfer.
            enqueued_time: as in `publish`.
        """
        try:
            made = [event for message in messages for event in read_events(message, 0)]
        except CodecError as error:
            raise ValueError(f"messages holds what is no AMQP message: {error}") from error
        return self._append(hub, partition_id, made, enqueued_time)

    def _append(
        self, hub: str, partition_id: str, made: list[Event], enqueued: float | datetime | None
    ) -> range:
        when = now() if enqueued is None else read_time(enqueued)
        return self._call(lambda server: server.log(hub, partition_id).append(made, when))

    def partition_ids(self, hub: str) -> list[str]:
        """Return the partition ids of a hub, in order."""
        return self._call(lambda server: server.find(hub).partition_ids)

    def partition_properties(self, hub: str, partition_id: str) -> PartitionProperties:
        """Return the properties of a partition."""
        return self._call(lambda server: _properties(partition_id, server.log(hub, partition_id)))

    def trim(
        self,
        hub: str,
        partition_id: str | None = None,
        before: int | None = None,
        *,
        forget_offset: bool = False,
    ) -> int:
        """Drop old events, as the service does when they are older than its retention.

        Args:
            hub: the hub's name.
            partition_id: which partition; None for all.
            before: sequence number of the first event to keep; None drops all.
            forget_offset: a partition without events reports the last offset "-1", as the service
                may; the last sequence number stays.

        Returns:
            How many events were dropped.
        """
        if before is not None:
            check_count("before", before, least=0)

        def work(server: Server) -> int:
            found = server.find(hub)
            ids = found.partition_ids if partition_id is None else [partition_id]
            logs = [server.log(hub, number) for number in ids]
            return sum(
                log.trim(log.end if before is None else before, forget_offset) for log in logs
            )

        return self._call(work)

    def replicate(self, hub: str) -> None:
        """Change a hub's offsets to those of a namespace with geo-replication, permanently.

        They are opaque strings, and an earlier decimal offset is refused with
        `com.microsoft:georeplication:invalid-offset`. Sequence numbers stay the same.
        """
        self._call(lambda server: server.find(hub).replicate())

    def create(self, hub: str, partitions: int) -> None:
        """Create another hub.

        Raises:
            ValueError: the name is taken, see `recreate`.
        """
        self._call(lambda server: server.hubs.create(hub, partitions))

    def recreate(self, hub: str, partitions: int | None = None) -> None:
        """Delete a hub and create it again: sequence numbers and offsets start at 0."""

        def work(server: Server) -> None:
            old = server.find(hub)
            count = len(old.partitions) if partitions is None else partitions
            server.hubs.recreate(old.name, count)

        self._call(work)

    def delete(self, hub: str) -> None:
        """Delete a hub; its receivers are detached."""
        self._call(lambda server: server.hubs.delete(server.find(hub).name))

    def add_partitions(self, hub: str, count: int) -> list[str]:
        """Add empty partitions to a hub and return their ids."""
        return self._call(lambda server: server.find(hub).add_partitions(count))

    def receivers(self, hub: str) -> list[Receiver]:
        """Return the receivers that are attached to a hub, ordered by partition."""
        return self._call(lambda server: _receivers(server.find(hub)))


def _properties(partition_id: str, log: PartitionLog) -> PartitionProperties:
    return PartitionProperties(
        partition_id=partition_id,
        first_sequence_number=log.first,
        last_sequence_number=log.end - 1,
        last_offset=log.last_offset,
        last_enqueued_time=log.last_time / 1000,
        is_empty=log.first == log.end,
    )


def _receivers(hub: Hub) -> list[Receiver]:
    links = [link for readers in hub.readers.values() for link in readers]
    links.sort(key=lambda link: (int(link.partition_id), link.name))
    return [
        Receiver(
            consumer_group=link.group,
            partition_id=link.partition_id,
            name=link.name,
            container_id=link.container_id,
            epoch=link.epoch,
            next_sequence_number=link.cursor,
        )
        for link in links
    ]
