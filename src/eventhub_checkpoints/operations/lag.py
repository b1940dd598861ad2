"""Lag of a consumer group: how far it is behind each partition of a hub."""

import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal

from azure.eventhub import CheckpointStore

from eventhub_checkpoints.operations.groups import Group, Owner, Row, group, in_order
from eventhub_checkpoints.operations.positions import Position
from eventhub_checkpoints.receive.address import Address, PartitionProperties
from eventhub_checkpoints.receive.hub import partition_properties
from eventhub_checkpoints.receive.ranges import OPERATION_TIMEOUT
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.sdk.consumer import EXPIRES_AFTER

Missing = Literal["earliest", "latest"]
"""Where the consumers start in a partition without a checkpoint."""


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """Position of a consumer group in one partition.

    Attributes:
        begin: sequence number of the first retained event; `last + 1` if none is retained.
        last: sequence number of the newest event; -1 if there never was one.
        checkpoint: sequence number of the last processed event; None if none is stored, or only an
            offset.
        offset: as stored; `""` if there is none.
        lag: number of retained events that are not processed yet. None if it is unknown, because
            the checkpoint holds an offset only.
        lost: number of events that expired before they were processed.
        checkpoint_age: seconds since the checkpoint was stored; None if there is none, or the store
            does not know.
        owner_id: `""` if no live member owns the partition.
        ownership_age: seconds since the ownership was renewed or released; None if none is stored.
        is_moved: whether another store has the position: the checkpoint is closed. It then has no
            number, no offset and no lag here.
        lag_seconds: age in seconds of the first event that is not processed; 0 if all are. None if
            it was not asked for.
    """

    partition_id: str
    begin: int
    last: int
    checkpoint: int | None
    offset: str
    lag: int | None
    lost: int
    checkpoint_age: float | None
    owner_id: str
    ownership_age: float | None
    is_moved: bool = False
    lag_seconds: float | None = None

    @property
    def is_gone(self) -> bool:
        """Return whether the checkpoint is ahead of the newest event, as in a re-created hub."""
        return self.checkpoint is not None and self.checkpoint > self.last

    @property
    def first_unprocessed(self) -> int | None:
        """Return the lowest sequence number that the first unprocessed event can have.

        None if there is no such event, or if that is unknown.
        """
        return self.last - self.lag + 1 if self.lag else None


@dataclass(frozen=True, slots=True)
class GroupLag:
    """Positions of a consumer group in all partitions of a hub.

    Attributes:
        time: when it was read, in seconds since the epoch.
        partitions: in numeric order.
        foreign: partitions with a checkpoint that the hub does not have.
    """

    scope: Scope
    time: float
    partitions: Sequence[PartitionLag]
    foreign: Sequence[str]

    @property
    def lag(self) -> int | None:
        """Return the lag of all partitions; None if that of one is unknown."""
        lags = [partition.lag for partition in self.partitions]
        return None if None in lags else sum(each for each in lags if each)

    @property
    def lag_seconds(self) -> float | None:
        """Return the highest lag in seconds of all partitions; None if that of one is unknown."""
        return oldest(partition.lag_seconds for partition in self.partitions)

    @property
    def members(self) -> int:
        """Return the number of live members that own a partition."""
        return len({each.owner_id for each in self.partitions if each.owner_id})

    @property
    def has_rows(self) -> bool:
        """Return whether the store has a row of the group."""
        return bool(self.foreign) or any(
            each.checkpoint is not None
            or each.offset
            or each.is_moved
            or each.ownership_age is not None
            for each in self.partitions
        )

    @property
    def lost(self) -> int:
        """Return the number of events that expired before they were processed."""
        return sum(partition.lost for partition in self.partitions)


def oldest(ages: Iterable[float | None]) -> float | None:
    """Return the highest age in seconds; None if one is unknown, 0 if there are none."""
    highest = 0.0
    for age in ages:
        if age is None:
            return None
        highest = max(highest, age)
    return highest


def next_retained(checkpoint: int | None, begin: int, last: int, missing: Missing) -> int:
    """Return the retained event that a group reads next.

    Args:
        checkpoint: sequence number of the last processed event; None if none is stored.
        begin: sequence number of the first retained event.
        last: of the newest one.
        missing: where consumers start without a checkpoint.
    """
    if checkpoint is None:
        return begin if missing == "earliest" else last + 1
    # A checkpoint ahead of the newest event belongs to a hub that was deleted: nothing of this one
    # was processed.
    return begin if checkpoint > last else max(checkpoint + 1, begin)


def partition_lag(
    properties: PartitionProperties,
    checkpoint: Row | None,
    ownership: Owner | None,
    now: float,
    missing: Missing = "earliest",
) -> PartitionLag:
    """Compare a checkpoint with the events that the hub retains.

    Args:
        properties: of the partition.
        checkpoint: a dict of `list_checkpoints`; None if there is none.
        ownership: of the partition; None if there is none.
        now: seconds since the epoch.
        missing: where consumers start without a checkpoint.
    """
    begin, last = properties.first_sequence_number, properties.next_sequence_number - 1
    row = checkpoint or {}
    number, offset = row.get("sequence_number"), row.get("offset")
    modified = row.get("last_modified_time")
    is_moved = Position(number).is_closed
    unprocessed: int | None = 0
    if is_moved:
        number, offset = None, ""
    elif checkpoint is not None and number is None:
        unprocessed = None
    else:
        unprocessed = last + 1 - next_retained(number, begin, last, missing)
    return PartitionLag(
        properties.partition_id,
        begin,
        last,
        number,
        offset if isinstance(offset, str) else "",
        unprocessed,
        0 if number is None else max(0, begin - 1 - number),
        None if modified is None else max(0.0, now - modified),
        ownership.consumer if ownership else "",
        ownership.age if ownership else None,
        is_moved,
    )


def lag(
    store: CheckpointStore,
    hub: Address,
    consumer_group: str | None = None,
    *,
    missing: Missing = "earliest",
    expires_after: float = EXPIRES_AFTER,
    timeout: float = OPERATION_TIMEOUT,
) -> GroupLag:
    """Read how far a consumer group is behind each partition of a hub.

    It takes one list of the group's checkpoints, one of its ownerships, and the properties of all
    partitions, which are queried concurrently.

    Args:
        store: any synchronous checkpoint store.
        hub: the hub.
        consumer_group: default: that of `hub`.
        missing: where the consumers start in a partition without a checkpoint.
        expires_after: seconds after which an ownership that was not renewed counts as expired.
        timeout: seconds for the queries to the hub.

    Raises:
        ConfigurationError: the namespace has no such hub, or refuses access.
    """
    scope = hub.scope(consumer_group)
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(group, store, scope, expires_after=expires_after)
        properties = partition_properties(hub, timeout=timeout)
        rows = reading.result()
    return confirmed_lag(hub, rows, properties, missing, timeout)


def confirmed_lag(
    hub: Address,
    group: Group,
    properties: Mapping[str, PartitionProperties],
    missing: Missing,
    timeout: float,
) -> GroupLag:
    """Compare rows and properties that were read concurrently.

    A checkpoint that was stored after the properties were read may be ahead of the newest event
    that they show, as if the hub had been re-created. Such partitions are queried again.

    Raises:
        ConfigurationError: the namespace has no such hub, or refuses access.
        HubUnavailableError: the hub did not answer within `timeout` (s).
    """
    sample = group_lag(group, properties, time.time(), missing)
    ahead = [position.partition_id for position in sample.partitions if position.is_gone]
    if not ahead:
        return sample
    newer = partition_properties(hub, ahead, timeout=timeout)
    return group_lag(group, {**properties, **newer}, time.time(), missing)


def group_lag(
    group: Group,
    properties: Mapping[str, PartitionProperties],
    now: float,
    missing: Missing = "earliest",
) -> GroupLag:
    """Compare the rows of a group with the events that the hub retains."""
    return GroupLag(
        group.scope,
        now,
        [
            partition_lag(
                properties[id_],
                group.checkpoints.get(id_),
                group.ownerships.get(id_),
                now,
                missing,
            )
            for id_ in in_order(properties)
        ],
        in_order(group.checkpoints.keys() - properties.keys()),
    )
