"""Positions of Spark jobs from the checkpoints of a store."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints.abilities import ListsScopes
from eventhub_checkpoints.errors import ConfigurationError, StoreError
from eventhub_checkpoints.receive.position import (
    EventPosition,
    after,
    checked_partitions,
    position_of,
)
from eventhub_checkpoints.receive.ranges import OPERATION_TIMEOUT
from eventhub_checkpoints.receive.read_plan import SHOWN_LENGTH, without_checkpoints
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.registry import open_store
from eventhub_checkpoints.spark.given import answers_at_once, checked_scope
from eventhub_checkpoints.spark.positions.hub_positions import EndingPositions, StartingPositions
from eventhub_checkpoints.spark.positions.hubs import (
    Hub,
    ask_partition_ids,
    name_of,
)

Missing = (
    str
    | datetime
    | EventPosition
    | Mapping[str, "str | datetime | EventPosition"]
    | Callable[[str], "str | datetime | EventPosition"]
)
"""Position of a partition without a checkpoint; see `starting_positions`."""

MISSING = (
    "for missing= one of 'earliest', 'latest', 'error', a datetime, an EventPosition, a dict of "
    "positions by partition id, or a callable that is given the partition id"
)


@contextmanager
def opened(store_or_url: Any) -> Iterator[Any]:
    """Yield the store, or one opened from a URL, which is closed afterwards."""
    if not isinstance(store_or_url, str):
        yield store_or_url
        return
    store = open_store(store_or_url)
    try:
        yield store
    finally:
        store.close()


def checkpoints_by_partition(store: Any, scope: Scope) -> dict[str, Mapping[str, Any]]:
    """Return the checkpoints of any store that has the SDK's public interface."""
    if not answers_at_once(store, "list_checkpoints"):
        raise ConfigurationError(
            f"{type(store).__name__} cannot be asked here; expected a store of the synchronous "
            "kind, or the URL of one"
        )
    return {row["partition_id"]: row for row in store.list_checkpoints(*scope)}


def held_scopes(store: Any) -> Sequence[Scope] | None:
    """Return the scopes in a store; None if it cannot list them."""
    if not isinstance(store, ListsScopes):
        return None
    try:
        return store.list_scopes()
    except StoreError:
        return None


def lacks_position(partition_ids: Iterable[str], missing: Missing) -> bool:
    """Return whether `missing` has no position for some of these partitions.

    None of the partitions has a checkpoint.
    """
    if isinstance(missing, Mapping):
        return not {str(key) for key in missing}.issuperset(partition_ids)
    return isinstance(missing, str) and missing == "error"


def for_missing(partition: str, missing: Missing, scope: Scope) -> EventPosition:
    """Return the position of a partition without a checkpoint.

    Raises:
        ConfigurationError: `missing` is malformed, or its dict does not name the partition.
    """
    if isinstance(missing, Mapping):
        named = {str(key): value for key, value in missing.items()}
        if partition not in named:
            raise ConfigurationError(
                f"partition {partition} has no checkpoint in {quoted(str(scope))}, and missing "
                "names no position for it"
            )
        return position_of(named[partition])
    if callable(missing):
        return position_of(missing(partition))
    return position_of(missing, MISSING)


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
    """Convert a consumer group's checkpoints into the starting positions of a Spark job.

    A checkpoint is the last processed event, a starting position the first event to read: a
    checkpoint at N becomes N + 1. A checkpoint without a sequence number becomes a position after
    its offset, which has to be resolved by the hub before it can be used with Kafka.

    Args:
        store_or_url: a store (sync), or the URL of one, which is opened and closed here.
        scope: scope of the checkpoints. The result has its `eventhub_name` as typed or, if `hub`
            is passed, as the hub's name is spelled there.
        partition_ids: every partition of the hub, because a new partition has no checkpoint.
            Default: those that `hub` has.
        missing: position of a partition without a checkpoint: `"earliest"`, `"latest"`, a
            datetime, an `EventPosition`, a dict of these by partition id, a callable that takes
            the partition id, or `"error"`.
        hub: a connection string, a `HubAddress` or an `EventHubConsumerClient` (sync).
        timeout: seconds for the request to the hub.

    Raises:
        ConfigurationError: an argument is unusable, or a checkpoint is missing and `missing`
            is `"error"` or does not name the partition.
        HubUnavailableError: the hub did not answer in time.
        StoreError: the store could not be read.
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
    """Convert a consumer group's checkpoints into the ending positions of a batch.

    Ends are exclusive: a checkpoint at N becomes N + 1, the first event that is not read. A
    partition without a checkpoint ends, by default, where it begins.

    Args:
        store_or_url: as in `starting_positions`, like the other arguments.
        scope: scope of the checkpoints.
        partition_ids: every partition of the hub; default: those that `hub` has.
        missing: ending position of a partition without a checkpoint.
        hub: a connection string, a `HubAddress` or an `EventHubConsumerClient` (sync).
        timeout: seconds for the request to the hub.

    Raises:
        ConfigurationError: as in `starting_positions`.
        HubUnavailableError: the hub did not answer in time.
        StoreError: the store could not be read.
    """
    asked = Asked.checked(scope, partition_ids, hub, timeout)
    return EndingPositions(asked.eventhub_name, asked.positions(store_or_url, missing))


@dataclass(frozen=True, slots=True)
class Asked:
    """Checked arguments of `starting_positions` and `ending_positions`."""

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
        """Check the arguments against each other, and request missing ones from the hub."""
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
        """Return the position after each checkpoint, or the one that replaces a missing one."""
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
    """Return the hub's name as the hub spells it: stores fold case, the JVM connector does not.

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
