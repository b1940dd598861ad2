"""Hubs of a namespace: partitions, consumer groups, routing and runtime information."""

from __future__ import annotations

import itertools
import zlib
from collections import defaultdict
from typing import TYPE_CHECKING, Protocol

from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints.localhub.arguments import (
    MAX_PARTITIONS,
    check_count,
    check_hub,
    check_hubs,
    read_groups,
)
from eventhub_checkpoints.localhub.clock import now
from eventhub_checkpoints.localhub.conditions import RefusedError, bad_partition, not_found
from eventhub_checkpoints.localhub.log import PartitionLog
from eventhub_checkpoints.localhub.readers import Reader

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from eventhub_checkpoints.amqp.performatives import Error
    from eventhub_checkpoints.localhub.events import Event

DEFAULT_GROUP = "$Default"


class Publisher(Protocol):
    """Link of a producer, which can be detached."""

    def detach(self, error: Error | None) -> None:
        """End the link with a condition."""


class ConnectedReader(Reader, Publisher, Protocol):
    """Reader that can be detached."""

    partition_id: str
    group: str
    container_id: str
    cursor: int


class Hub:
    """Event hub. Names of hubs and groups are compared without regard to case.

    Args:
        name: as it was created.
        partitions: number of partitions.
        groups: the consumer groups in addition to `$Default`; None admits every name.
    """

    def __init__(self, name: str, partitions: int, groups: Iterable[str] | None) -> None:
        self.name = name
        self.created_at = now()
        self.partitions: list[PartitionLog] = []
        self.readers: dict[tuple[str, str], list[ConnectedReader]] = defaultdict(list)
        self.publishers: set[Publisher] = set()
        self._groups = None if groups is None else {g.lower() for g in (*groups, DEFAULT_GROUP)}
        self._turn = itertools.count()
        self._is_replicated = False
        self.add_partitions(partitions)

    @property
    def partition_ids(self) -> list[str]:
        """Return the ids, in order."""
        return [str(number) for number in range(len(self.partitions))]

    def add_partitions(self, count: int) -> list[str]:
        """Add empty partitions and return their ids."""
        check_count("the count of new partitions", count, least=1)
        before = len(self.partitions)
        if before + count > MAX_PARTITIONS:
            raise ValueError(
                f"hub {quoted(self.name)} has {before} partitions and cannot get {count} more: "
                f"it holds at most {MAX_PARTITIONS}"
            )
        self.partitions.extend(PartitionLog(self._is_replicated) for _ in range(count))
        return self.partition_ids[before:]

    def replicate(self) -> None:
        """Change the offsets of all partitions to those of a hub with geo-replication."""
        self._is_replicated = True
        for log in self.partitions:
            log.replicate()

    def partition(self, partition_id: str) -> PartitionLog:
        """Find a partition.

        Raises:
            RefusedError: there is none with this id.
        """
        if partition_id not in self.partition_ids:
            raise RefusedError(bad_partition(len(self.partitions)))
        return self.partitions[int(partition_id)]

    def check_group(self, group: str) -> str:
        """Return the group's name for comparison.

        Raises:
            RefusedError: the hub has no such group.
        """
        key = group.lower()
        if self._groups is not None and key not in self._groups:
            raise RefusedError(not_found(f"{self.name}/consumergroups/{group}"))
        return key

    def append(self, events: list[Event]) -> None:
        """Store events that were sent without a partition: by key, else in turn."""
        time = now()
        batches: dict[int, list[Event]] = defaultdict(list)
        turn = next(self._turn)
        for event in events:
            # The service uses another hash function; crc32 keeps the guarantee that matters: one
            # key, one partition.
            hashed = turn if event.key is None else zlib.crc32(event.key.encode())
            batches[hashed % len(self.partitions)].append(event)
        for number, batch in batches.items():
            self.partitions[number].append(batch, time)

    def detach_readers(
        self, error: Error, partition_id: str | None = None, group: str | None = None
    ) -> int:
        """Detach readers and return how many."""
        chosen = [
            reader
            for readers in self.readers.values()
            for reader in readers
            if partition_id in (None, reader.partition_id)
            and (group is None or group.lower() == reader.group.lower())
        ]
        for reader in chosen:
            reader.detach(error)
        return len(chosen)


class Hubs:
    """Hubs of a namespace by name."""

    def __init__(self, hubs: Mapping[str, int], groups: Iterable[str] | None) -> None:
        check_hubs(hubs)
        self._groups = read_groups(groups)
        self._hubs: dict[str, Hub] = {}
        for name, partitions in hubs.items():
            self.create(name, partitions)

    @property
    def names(self) -> list[str]:
        """Return the hubs' names as they were created."""
        return [hub.name for hub in self._hubs.values()]

    def find(self, name: str) -> Hub:
        """Find a hub.

        Raises:
            RefusedError: there is none with this name.
        """
        hub = self._hubs.get(name.lower()) if isinstance(name, str) else None
        if hub is None:
            raise RefusedError(not_found(name))
        return hub

    def create(self, name: str, partitions: int) -> None:
        """Create a hub.

        Raises:
            ValueError: its name or number of partitions is invalid, or the name is taken.
        """
        check_hub(name, partitions)
        if name.lower() in self._hubs:
            raise ValueError(f"hub {quoted(name)} exists; `recreate` empties it")
        self._hubs[name.lower()] = Hub(name, partitions, self._groups)

    def recreate(self, name: str, partitions: int) -> None:
        """Replace the hub with the same name by a new one; its sequence numbers start at 0."""
        check_hub(name, partitions)
        self.delete(name)
        self.create(name, partitions)

    def delete(self, name: str) -> None:
        """Delete a hub, if it exists, and end the links to it."""
        old = self._hubs.pop(name.lower(), None)
        if old is not None:
            old.detach_readers(not_found(old.name))
            for publisher in tuple(old.publishers):
                publisher.detach(not_found(old.name))
