"""From the checkpoints of a store to the starting positions of a Spark job."""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.receive.checkpoints import SHOWN_LENGTH, without_checkpoints
from eventhub_checkpoints.receive.position import EventPosition, after, checked_partitions
from eventhub_checkpoints.receive.ranges import OPERATION_TIMEOUT
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.spark.given import checked_scope
from eventhub_checkpoints.spark.positions.hub_positions import EndingPositions, StartingPositions
from eventhub_checkpoints.spark.positions.hubs import (
    Hub,
    ask_partition_ids,
    name_of,
)
from eventhub_checkpoints.spark.positions.stored import (
    Missing,
    checkpoints_by_partition,
    for_missing,
    held_scopes,
    lacks_position,
    opened,
)

__all__ = [
    "EndingPositions",
    "Missing",
    "StartingPositions",
    "ending_positions",
    "starting_positions",
]

_LOGGER = logging.getLogger(__name__)


def starting_positions(
    store_or_url: Any,
    scope: Scope,
    partition_ids: Iterable[str | int] | None = None,
    missing: Missing = "earliest",
    *,
    hub: Hub | None = None,
    timeout: float = OPERATION_TIMEOUT,
) -> StartingPositions:
    """Turn a consumer group's checkpoints into the places where a Spark job begins.

    A checkpoint says which event was processed last, a starting position which event is read
    first: a checkpoint at N begins at N + 1. One that carries no sequence number begins after
    its offset, which Kafka cannot be told before the hub was asked: nothing is guessed.

    Args:
        store_or_url: a store (sync), or the URL of one, which is opened and closed here.
        scope: whose checkpoints. Its `eventhub_name` is written as typed, unless the hub itself
            is given and says how it is written.
        partition_ids: every partition of the hub: a new partition has no checkpoint to be known
            by. Default: those that `hub` has.
        missing: where a partition without a checkpoint begins: `"earliest"`, `"latest"`, a
            datetime, an `EventPosition`, a dict of these by partition id, a callable that is
            given the partition id, or `"error"`.
        hub: a connection string, a `HubAddress` or an `EventHubConsumerClient` (sync).
        timeout: seconds for the question to the hub.

    Raises:
        ConfigurationError: an argument is unusable, or a checkpoint is missing and `missing`
            is `"error"` or does not name the partition.
        HubUnavailableError: the hub did not answer in time.
        StoreError: the store could not be asked.
    """
    asked = Asked.checked(scope, partition_ids, hub, timeout)
    return StartingPositions(asked.eventhub_name, asked.positions(store_or_url, missing))


def ending_positions(
    store_or_url: Any,
    scope: Scope,
    partition_ids: Iterable[str | int] | None = None,
    missing: Missing = "earliest",
    *,
    hub: Hub | None = None,
    timeout: float = OPERATION_TIMEOUT,
) -> EndingPositions:
    """Where a batch ends that reads up to and including what the store has.

    Ends are exclusive: a checkpoint at N becomes N + 1, the first event that is not read. A
    partition without a checkpoint ends, by default, where it begins.

    Args:
        store_or_url: as in `starting_positions`, and so are the rest.
        scope: whose checkpoints.
        partition_ids: every partition of the hub; default: those that `hub` has.
        missing: where a partition without a checkpoint ends.
        hub: a connection string, a `HubAddress` or an `EventHubConsumerClient` (sync).
        timeout: seconds for the question to the hub.

    Raises:
        ConfigurationError: as in `starting_positions`.
        HubUnavailableError: the hub did not answer in time.
        StoreError: the store could not be asked.
    """
    asked = Asked.checked(scope, partition_ids, hub, timeout)
    return EndingPositions(asked.eventhub_name, asked.positions(store_or_url, missing))


@dataclass(frozen=True, slots=True)
class Asked:
    """Which partitions of which hub, and whose checkpoints, all of it checked."""

    scope: Scope
    eventhub_name: str
    partition_ids: list[str]

    @classmethod
    def checked(
        cls,
        scope: Scope,
        partition_ids: Iterable[str | int] | None,
        hub: Hub | None,
        timeout: float,
    ) -> Self:
        """Hold the arguments against one another, and ask the hub for what is not given."""
        name = checked_scope(scope).eventhub_name if hub is None else same_hub(scope, hub)
        if partition_ids is not None:
            return cls(scope, name, checked_partitions(partition_ids))
        if hub is None:
            raise ConfigurationError(
                "partition_ids is None; give every partition of the hub, such as ['0', '1'], or "
                "hub=, which is asked for them"
            )
        return cls(scope, name, ask_partition_ids(hub, timeout))

    def positions(self, store_or_url: Any, missing: Missing) -> dict[str, EventPosition]:
        """The position behind each checkpoint, or what stands for a missing one."""
        with opened(store_or_url) as store:
            stored = checkpoints_by_partition(store, self.scope)
            if not stored:
                sentence = without_checkpoints(self.scope, held_scopes(store))
                if lacks_position(self.partition_ids, missing):
                    raise ConfigurationError(sentence)
                _LOGGER.warning("%s (its partitions are placed as missing= says)", sentence)
        _compare(self.scope, self.partition_ids, stored, missing)
        return {
            partition: after(partition, stored[partition])
            if partition in stored
            else for_missing(partition, missing, self.scope)
            for partition in self.partition_ids
        }


def same_hub(scope: Scope, hub: Hub) -> str:
    """The hub's name as the hub is written: stores fold case, and the JVM connector does not.

    Raises:
        ConfigurationError: the scope names another hub.
    """
    name = name_of(hub)
    if name.casefold() != scope.eventhub_name.casefold():
        raise ConfigurationError(
            f"the checkpoints are those of hub {quoted(scope.eventhub_name)}, and hub= is "
            f"{quoted(name)}"
        )
    return name


def _compare(scope: Scope, wanted: list[str], stored: Mapping[str, Any], missing: Missing) -> None:
    if unknown := sorted(stored.keys() - set(wanted)):
        _LOGGER.warning(
            "%s has checkpoints of partitions that were not asked for: %s", scope, unknown
        )
    absent = ", ".join(partition for partition in wanted if partition not in stored)
    if absent and isinstance(missing, str) and missing == "error":
        named = quoted(str(scope), SHOWN_LENGTH)
        raise ConfigurationError(f"{named} has no checkpoint of partition {absent}")
