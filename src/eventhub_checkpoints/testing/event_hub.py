"""`EventHub`: an event hub for one test, on a local hub that many tests share."""

from __future__ import annotations

import gc
import itertools
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from eventhub_checkpoints._shared.arguments import with_checked_arguments
from eventhub_checkpoints._shared.partition_keys import partition_of
from eventhub_checkpoints.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from eventhub_checkpoints.localhub import LocalHub, StoredEvent

_NUMBERS = itertools.count(1)


class EventHub:
    """Event hub for one test; no other test sees its events.

    Args:
        local_hub: a running one, to which the hub is added.
        partitions: number of partitions.
        name: of the hub; by default one that no other test has.

    Raises:
        ConfigurationError: the call has an argument that does not exist.
        ValueError: the name or the number of partitions is invalid, or the name is taken.

    Attributes:
        local_hub: for [fault injection](../localhub.md#fault-injection); its methods take `name`.
        name: of the hub.
    """

    @with_checked_arguments
    def __init__(self, local_hub: LocalHub, partitions: int = 1, name: str | None = None) -> None:
        self.local_hub = local_hub
        self.name = f"hub-{next(_NUMBERS)}" if name is None else name
        local_hub.create(self.name, partitions)
        self._turn = itertools.count()
        self._has_dropped = False

    def delete(self) -> None:
        """Delete the hub, and end all faults of the local hub."""
        self.local_hub.end_faults()
        self.local_hub.accept_keys(None)
        self.local_hub.delete(self.name)
        if self._has_dropped:
            # azure-eventhub leaves sockets of lost connections to the garbage collector, whose
            # warnings belong to this test and not to a later one.
            gc.collect()

    @property
    def connection_string(self) -> str:
        """Connection string with the hub's name, for `from_connection_string` of the clients."""
        return self.local_hub.connection_string(self.name)

    @property
    def namespace(self) -> str:
        """Fully qualified namespace that stores see, such as `127.0.0.1:41234`."""
        return f"{self.local_hub.host}:{self.local_hub.port}"

    @property
    def partition_ids(self) -> list[str]:
        """Partition ids, in order."""
        return self.local_hub.partition_ids(self.name)

    def publish(
        self,
        *bodies: bytes | str,
        partition_id: str | None = None,
        partition_key: str | None = None,
        properties: Mapping[str, Any] | None = None,
        enqueued_time: float | datetime | None = None,
    ) -> dict[str, int]:
        """Append events, without a client.

        Args:
            *bodies: one for each event; strings are stored as UTF-8.
            partition_id: the partition of all of them. Without it and without a key, the events
                take turns, from the first partition on.
            partition_key: the key of all of them; it chooses the partition, as in the service.
            properties: application properties of every event.
            enqueued_time: float seconds since the epoch, or an aware datetime; now if None.

        Returns:
            The last sequence number of each partition that has events: what is stored as soon as a
            consumer has processed and saved everything.

        Raises:
            ConfigurationError: there is no body, or a list of them, or both a partition and a key.
            LookupError: the hub has no such partition.
            ValueError: another argument is invalid.
        """
        if not bodies or isinstance(bodies[0], list | tuple):
            raise ConfigurationError(
                "publish takes the bodies one by one: publish('first', 'second'), or "
                "publish(*bodies) for a list"
            )
        if partition_id is not None and partition_key is not None:
            raise ConfigurationError(
                "publish takes partition_id or partition_key, not both: a key chooses its partition"
            )
        ids = self.partition_ids
        if partition_key is not None:
            partition_id = partition_of(str(partition_key), ids)
        batches: defaultdict[str, list[bytes | str]] = defaultdict(list)
        for body in bodies:
            turn = ids[next(self._turn) % len(ids)] if partition_id is None else partition_id
            batches[turn].append(body)
        for each, batch in batches.items():
            self.local_hub.publish(
                self.name,
                each,
                batch,
                properties=properties,
                partition_key=partition_key,
                enqueued_time=enqueued_time,
            )
        return self.last_sequence_numbers()

    def last_sequence_numbers(self) -> dict[str, int]:
        """Return the number of the newest event of each partition that has ever had one."""
        properties = (
            self.local_hub.partition_properties(self.name, each) for each in self.partition_ids
        )
        return {
            each.partition_id: each.last_sequence_number
            for each in properties
            if each.last_sequence_number >= 0
        }

    def received(self, partition_id: str | None = None) -> list[StoredEvent]:
        """Return the events that the hub has received, from producers and from `publish`.

        Args:
            partition_id: only those of this partition; None: those of all, one after the other.
        """
        return self.local_hub.events(self.name, partition_id)

    def drop(self) -> int:
        """Drop all connections, as an outage does; return how many. Clients connect again."""
        self._has_dropped = True
        return self.local_hub.drop_connections()
