"""Positions of Spark jobs from the checkpoints of a store."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from eventhub_checkpoints._shared.arguments import with_checked_arguments
from eventhub_checkpoints._shared.callables import require_call, run
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
from eventhub_checkpoints.sdk.consumer import UNNAMED
from eventhub_checkpoints.spark.hub import Hub, ask_partition_ids, scope_of
from eventhub_checkpoints.spark.positions import EndingPositions, StartingPositions
from eventhub_checkpoints.spark.validation import checked_scope, has_sync_method

log = logging.getLogger(__name__)

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
    "positions by partition id, or a callable that takes the partition id"
)


@with_checked_arguments
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
            is passed, as the hub's name is spelled there. A warning is logged if no partition has
            a checkpoint in it.
        partition_ids: every partition of the hub, because a new partition has no checkpoint.
            Default: those that `hub` has.
        missing: position of a partition without a checkpoint: `"earliest"`, `"latest"`, a
            datetime, an `EventPosition`, a dict of these by partition id, a callable that takes
            the partition id, or `"error"`.
        hub: a connection string, a `HubAddress` or an `EventHubConsumerClient` (sync), of the hub
            and the namespace in `scope`.
        timeout: seconds for the request to the hub.

    Raises:
        ConfigurationError: an argument is unusable, or a checkpoint is missing and `missing`
            is `"error"` or does not name the partition.
        HubUnavailableError: the hub did not answer in time.
        StoreError: the store could not be read.
    """
    name, ids = _hub_name_and_partitions(scope, partition_ids, hub, timeout)
    return StartingPositions(name, _positions(store_or_url, scope, ids, missing))


@with_checked_arguments
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
    name, ids = _hub_name_and_partitions(scope, partition_ids, hub, timeout)
    return EndingPositions(name, _positions(store_or_url, scope, ids, missing))


def _hub_name_and_partitions(
    scope: Scope, partition_ids: Iterable[str | int] | None, hub: Hub | None, timeout: float
) -> tuple[str, list[str]]:
    """Return the hub's name and partition ids, which are requested from the hub if not passed.

    The name is as the hub spells it: stores fold case, the JVM connector does not.

    Raises:
        ConfigurationError: the scope names another hub or namespace, or neither source of ids is
            passed.
    """
    name = checked_scope(scope).eventhub_name
    if hub is not None:
        read = scope_of(hub)
        name = read.eventhub_name
        require_same("hub", scope.eventhub_name, name)
        if read.fully_qualified_namespace != UNNAMED:
            require_same(
                "namespace", scope.fully_qualified_namespace, read.fully_qualified_namespace
            )
    if partition_ids is not None:
        return name, checked_partitions(partition_ids)
    if hub is None:
        raise ConfigurationError(
            "partition_ids is None; pass every partition of the hub, such as ['0', '1'], or hub= "
            "to look them up"
        )
    return name, ask_partition_ids(hub, timeout)


def require_same(kind: str, name: str, of_hub: str) -> None:
    """Refuse checkpoints of another hub or namespace than the one that is read.

    Raises:
        ConfigurationError: the names differ, in more than upper and lower case.
    """
    if name.casefold() != of_hub.casefold():
        raise ConfigurationError(
            f"the scope of the checkpoints has the {kind} {quoted(name)}, and hub= has "
            f"{quoted(of_hub)}; take the scope of the hub, such as "
            "HubAddress.from_connection_string(...).scope(CONSUMER_GROUP), or, to begin at the "
            "positions of another hub, pass partition_ids= and leave hub= out"
        )


def _positions(
    store_or_url: Any, scope: Scope, partition_ids: list[str], missing: Missing
) -> dict[str, EventPosition]:
    """Return the position after each checkpoint, or the one that replaces a missing one."""
    with _opened(store_or_url) as store:
        if not has_sync_method(store, "list_checkpoints"):
            raise ConfigurationError(
                f"{type(store).__name__} cannot be read here; expected a store of the synchronous "
                "kind, or the URL of one"
            )
        stored = {row["partition_id"]: row for row in store.list_checkpoints(*scope)}
        if not stored:
            message = without_checkpoints(scope, _list_scopes(store))
            if _lacks_position(partition_ids, missing):
                raise ConfigurationError(message)
            log.warning("%s (its partitions begin at the positions of missing=)", message)
    if unknown := sorted(stored.keys() - set(partition_ids)):
        log.warning("%s has checkpoints of partitions not in partition_ids: %s", scope, unknown)
    absent = ", ".join(partition for partition in partition_ids if partition not in stored)
    if absent and isinstance(missing, str) and missing == "error":
        named = quoted(str(scope), SHOWN_LENGTH)
        raise ConfigurationError(
            f"{named} has no checkpoint of partition {absent}; pass a position as missing="
        )
    return {
        partition: after(partition, stored[partition])
        if partition in stored
        else _missing_position(partition, missing, scope)
        for partition in partition_ids
    }


@contextmanager
def _opened(store_or_url: Any) -> Iterator[Any]:
    """Yield the store, or one opened from a URL, which is closed afterwards."""
    if not isinstance(store_or_url, str):
        yield store_or_url
        return
    store = open_store(store_or_url)
    try:
        yield store
    finally:
        store.close()


def _list_scopes(store: Any) -> Sequence[Scope] | None:
    """Return the scopes in a store; None if it cannot list them."""
    try:
        return store.list_scopes() if isinstance(store, ListsScopes) else None
    except StoreError:
        return None


def _lacks_position(partition_ids: Iterable[str], missing: Missing) -> bool:
    """Return whether some of these partitions, all without a checkpoint, have no position."""
    if isinstance(missing, Mapping):
        return not {str(key) for key in missing}.issuperset(partition_ids)
    return isinstance(missing, str) and missing == "error"


def _missing_position(partition: str, missing: Missing, scope: Scope) -> EventPosition:
    """Return the position of a partition without a checkpoint.

    Raises:
        ConfigurationError: `missing` is malformed, or its dict does not name the partition.
    """
    if isinstance(missing, Mapping):
        positions = {str(key): value for key, value in missing.items()}
        if partition not in positions:
            raise ConfigurationError(
                f"partition {partition} has no checkpoint in {quoted(str(scope))}; add its "
                "position to missing="
            )
        return position_of(positions[partition])
    if not callable(missing):
        return position_of(missing, MISSING)
    require_call("missing", "the id of a partition", missing, partition)
    return position_of(run(missing, partition))
