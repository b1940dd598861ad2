"""Hubs of a namespace: partitions and their events, consumer groups, and routing."""

from __future__ import annotations

import itertools
from array import array
from bisect import bisect_left, bisect_right
from collections import defaultdict
from typing import TYPE_CHECKING, Literal

from eventhub_checkpoints._shared.offset_words import START_OF_STREAM
from eventhub_checkpoints._shared.partition_keys import partition_of
from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints.amqp.types import Timestamp
from eventhub_checkpoints.localhub import arguments
from eventhub_checkpoints.localhub.conditions import RefusedError, bad_partition, not_found
from eventhub_checkpoints.localhub.events import now, read_events

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from eventhub_checkpoints.amqp.performatives import Error
    from eventhub_checkpoints.localhub.delivery import EventLink
    from eventhub_checkpoints.localhub.events import Event
    from eventhub_checkpoints.localhub.links import PublishLink

REPLICA = "1:"
"""Prefix of the offsets of a geo-replicated hub here; the service's own form is opaque."""
_OVERHEAD = 24
"""Bytes added to the size of an event, so that offsets never look like sequence numbers."""


class PartitionLog:
    """Events of a partition, to be appended, trimmed and located.

    Offsets are byte positions: the first is 0, each next one is larger by the event's size.

    Args:
        is_replicated: whether the hub is geo-replicated at first.

    Attributes:
        first: sequence number of the first retained event.
        payloads: the retained events in the form in which they are delivered.
        listeners: called after each append.
        is_replicated: whether offsets are those of a hub with geo-replication.
    """

    def __init__(self, is_replicated: bool) -> None:
        self.first = 0
        self.payloads: list[bytes] = []
        self.listeners: set[Callable[[], None]] = set()
        self._offsets = array("q")
        self._times = array("q")
        self._next_offset = 0
        self._last_offset = -1
        self.last_time = 0
        self.is_replicated = is_replicated

    @property
    def end(self) -> int:
        """Sequence number of the next event."""
        return self.first + len(self.payloads)

    @property
    def last_offset(self) -> str:
        """Offset of the newest event; `START_OF_STREAM` if unknown."""
        return START_OF_STREAM if self._last_offset < 0 else self._spelled(self._last_offset)

    def _spelled(self, offset: int) -> str:
        return f"{REPLICA}{offset}" if self.is_replicated else str(offset)

    def read_offset(self, text: str) -> int | None:
        """Parse an offset that a client sends; return None if it lies past the end.

        Raises:
            ValueError: the string is not an offset of this hub.
        """
        if self.is_replicated and text != START_OF_STREAM:
            if not text.startswith(REPLICA):
                raise ValueError(
                    f"offset is {text!r}; expected {REPLICA} and a number, as in a hub with "
                    "geo-replication"
                )
            text = text.removeprefix(REPLICA)
        offset = int(text)
        return None if offset > self._last_offset else offset

    def replicate(self) -> None:
        """Change all offsets to those of a hub with geo-replication."""
        self.is_replicated = True
        for at, (offset, time) in enumerate(zip(self._offsets, self._times, strict=True)):
            (event,) = read_events(self.payloads[at], 0)
            self.payloads[at] = event.stored(self.first + at, self._spelled(offset), time)

    def append(self, events: Iterable[Event], now: int) -> range:
        """Store events and notify the listeners.

        Args:
            events: in the order in which they get their numbers.
            now: their enqueued time in milliseconds; raised to the previous event's if earlier.

        Returns:
            The sequence numbers.
        """
        start = number = self.end
        time = max(now, self.last_time)
        for event in events:
            offset = self._next_offset
            self.payloads.append(event.stored(number, self._spelled(offset), time))
            self._offsets.append(offset)
            self._times.append(time)
            self._next_offset = offset + len(event.rest) + _OVERHEAD
            self._last_offset, self.last_time = offset, time
            number += 1
        for listener in tuple(self.listeners):
            listener()
        return range(start, number)

    def trim(self, before: int, forget_offset: bool) -> int:
        """Drop the events whose sequence number is below `before`; return how many.

        Args:
            before: sequence number of the first event to keep.
            forget_offset: if no event is left, `last_offset` becomes `START_OF_STREAM`.
        """
        count = max(0, min(before, self.end) - self.first)
        del self.payloads[:count], self._offsets[:count], self._times[:count]
        self.first += count
        if forget_offset and not self.payloads:
            self._last_offset = -1
        return count

    def locate(self, key: Literal["offset", "time"], value: int, inclusive: bool) -> int:
        """Return the number of the first event after a value, or from it on if `inclusive`."""
        find = bisect_left if inclusive else bisect_right
        return self.first + find(self._times if key == "time" else self._offsets, value)


DEFAULT_GROUP = "$Default"


class Hub:
    """Event hub. Names of hubs and groups are compared without regard to case.

    Args:
        name: as it was created.
        partitions: number of partitions.
        groups: the consumer groups in addition to `$Default`; None admits every name.
        created_at: what the hub reports.
    """

    def __init__(
        self, name: str, partitions: int, groups: Iterable[str] | None, created_at: Timestamp
    ) -> None:
        self.name = name
        self.created_at = created_at
        self.partitions: list[PartitionLog] = []
        self.readers: dict[tuple[str, str], list[EventLink]] = defaultdict(list)
        self.publishers: set[PublishLink] = set()
        self._groups = None if groups is None else {g.lower() for g in (*groups, DEFAULT_GROUP)}
        self._turn = itertools.count()
        self._is_replicated = False
        self.add_partitions(partitions)

    @property
    def partition_ids(self) -> list[str]:
        """Return the ids, in order."""
        return [str(number) for number in range(len(self.partitions))]

    @property
    def regions(self) -> int:
        """Number of regions with its events: 1 without geo-replication."""
        return 2 if self._is_replicated else 1

    def add_partitions(self, count: int) -> list[str]:
        """Add empty partitions and return their ids."""
        arguments.check_count("the count of new partitions", count, least=1)
        before = len(self.partitions)
        if before + count > arguments.MAX_PARTITIONS:
            raise ValueError(
                f"hub {quoted(self.name)} has {before} partitions and cannot get {count} more: "
                f"a hub has at most {arguments.MAX_PARTITIONS}"
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
            RefusedError: the hub has no partition with this id.
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
        ids = self.partition_ids
        by_key: dict[str | None, str] = {None: ids[next(self._turn) % len(ids)]}
        batches: dict[str, list[Event]] = defaultdict(list)
        for event in events:
            if event.key is not None and event.key not in by_key:
                by_key[event.key] = partition_of(event.key, ids)
            batches[by_key[event.key]].append(event)
        for partition_id, batch in batches.items():
            self.partitions[int(partition_id)].append(batch, time)

    def detach_readers(
        self, error: Error, partition_id: str | None = None, group: str | None = None
    ) -> int:
        """Detach readers and return how many."""
        chosen = self._chosen(partition_id, group)
        for reader in chosen:
            reader.detach(error)
        return len(chosen)

    def mute_readers(self, partition_id: str | None, group: str | None) -> int:
        """Have readers deliver nothing more, and return how many."""
        chosen = self._chosen(partition_id, group)
        for reader in chosen:
            reader.is_mute = True
        return len(chosen)

    def _chosen(self, partition_id: str | None, group: str | None) -> list[EventLink]:
        return [
            reader
            for readers in self.readers.values()
            for reader in readers
            if partition_id in (None, reader.partition_id)
            and (group is None or group.lower() == reader.group.lower())
        ]


class Hubs:
    """Hubs of a namespace by name."""

    def __init__(
        self,
        hubs: Mapping[str, int],
        groups: Iterable[str] | Mapping[str, Iterable[str]] | None,
    ) -> None:
        arguments.check_hubs(hubs)
        self._groups_of = arguments.read_groups_of(groups)
        self._hubs: dict[str, Hub] = {}
        self._created_at = 0
        for name, partitions in hubs.items():
            self.create(name, partitions)

    @property
    def names(self) -> list[str]:
        """Return the hubs' names as they were created."""
        return [hub.name for hub in self._hubs.values()]

    def find(self, name: str) -> Hub:
        """Find a hub.

        Raises:
            RefusedError: no hub has this name.
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
        arguments.check_hub(name, partitions)
        if name.lower() in self._hubs:
            raise ValueError(f"hub {quoted(name)} exists already; call recreate() to empty it")
        # A hub that is created again within a millisecond can be told from the one before.
        self._created_at = max(now(), self._created_at + 1)
        created_at = Timestamp(self._created_at)
        self._hubs[name.lower()] = Hub(name, partitions, self._groups_of(name), created_at)

    def recreate(self, name: str, partitions: int) -> None:
        """Replace the hub with the same name by a new one; its sequence numbers start at 0."""
        arguments.check_hub(name, partitions)
        self.delete(name)
        self.create(name, partitions)

    def delete(self, name: str) -> None:
        """Delete a hub, if it exists, and end the links to it."""
        old = self._hubs.pop(name.lower(), None)
        if old is not None:
            old.detach_readers(not_found(old.name))
            for publisher in tuple(old.publishers):
                publisher.detach(not_found(old.name))
