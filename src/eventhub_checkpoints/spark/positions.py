"""From the checkpoints of a store to the starting positions of a Spark job."""

import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any

from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.registry import open_store
from eventhub_checkpoints.spark.position import EventPosition, position_of
from eventhub_checkpoints.spark.texts import connector_positions, kafka_offsets

if TYPE_CHECKING:
    from collections.abc import Iterator

_LOGGER = logging.getLogger(__name__)

Missing = (
    str
    | datetime
    | EventPosition
    | Mapping[str, "str | datetime | EventPosition"]
    | Callable[[str], "str | datetime | EventPosition"]
)
"""Where a partition without a checkpoint begins; see `starting_positions`."""

MISSING = (
    "for missing= one of 'earliest', 'latest', 'error', a datetime, an EventPosition, a dict of "
    "positions by partition id, or a callable that is given the partition id"
)


@dataclass(frozen=True, slots=True)
class StartingPositions:
    """Where each partition of a hub begins, in the words of three Spark sources.

    Attributes:
        eventhub_name: as it was typed: the JVM connector ignores a name in another case.
        positions: every partition's position, by partition id, in numeric order.
    """

    eventhub_name: str
    positions: Mapping[str, EventPosition]

    def to_connector(self) -> str:
        """The JVM connector's option `eventhubs.startingPositions`."""
        return connector_positions(self.eventhub_name, self.positions)

    def to_kafka(self, topic: str | None = None) -> str:
        """The option `startingOffsets` of Spark's Kafka source.

        Args:
            topic: as it was subscribed to; default: the hub's name as typed.

        Raises:
            ConfigurationError: a partition begins at a time or a bare offset.
        """
        return kafka_offsets(topic or self.eventhub_name, self.positions)

    def to_source(self) -> dict[str, str]:
        """The options of this package's own source, for `.options(**...)`."""
        return {"startingPositions": self.to_connector()}


def starting_positions(
    store_or_url: Any,
    scope: Scope,
    partition_ids: Iterable[str | int],
    missing: Missing = "earliest",
) -> StartingPositions:
    """Turn a consumer group's checkpoints into the places where a Spark job begins.

    A checkpoint says which event was processed last, a starting position which event is read
    first: a checkpoint at N begins at N + 1. One that carries no sequence number begins after
    its offset, which `to_kafka` refuses, for nothing is guessed.

    Args:
        store_or_url: a store (sync), or the URL of one, which is opened and closed here.
        scope: whose checkpoints. Its `eventhub_name` is written as typed.
        partition_ids: every partition of the hub, for example from the client's
            `get_partition_ids()`: a new partition has no checkpoint to be known by.
        missing: where a partition without a checkpoint begins: `"earliest"`, `"latest"`, a
            datetime, an `EventPosition`, a dict of these by partition id, a callable that is
            given the partition id, or `"error"`.

    Raises:
        ConfigurationError: an argument is unusable, or a checkpoint is missing and `missing`
            is `"error"` or does not name the partition.
        StoreError: the store could not be asked.
    """
    if not isinstance(scope, Scope):
        # By its type: a connection string that was put here must not be shown.
        raise ConfigurationError(f"scope is of type {type(scope).__name__}; expected a Scope")
    wanted = checked_partitions(partition_ids)
    with opened(store_or_url) as store:
        stored = checkpoints_by_partition(store, scope)
    _compare(scope, wanted, stored, missing)
    return StartingPositions(
        scope.eventhub_name,
        {
            partition: after(partition, stored[partition])
            if partition in stored
            else for_missing(partition, missing)
            for partition in wanted
        },
    )


def _compare(scope: Scope, wanted: list[str], stored: Mapping[str, Any], missing: Missing) -> None:
    if unknown := sorted(stored.keys() - set(wanted)):
        _LOGGER.warning(
            "%s has checkpoints of partitions that were not asked for: %s", scope, unknown
        )
    absent = ", ".join(partition for partition in wanted if partition not in stored)
    if absent and isinstance(missing, str) and missing == "error":
        raise ConfigurationError(f"{scope} has no checkpoint of partition {absent}")


def checked_partitions(partition_ids: Iterable[str | int]) -> list[str]:
    """Partition ids as the SDK writes them, in numeric order.

    Raises:
        ConfigurationError: they are no iterable, there is none, or one is no number (the
            connector needs numbers).
    """
    several = isinstance(partition_ids, Iterable) and not isinstance(partition_ids, str | bytes)
    given = list(partition_ids) if several else []
    if not given:
        raise ConfigurationError(
            f"partition_ids is {partition_ids!r}; expected every partition, such as ['0', '1']"
        )
    texts = {str(partition) for partition in given}
    odd = sorted(text for text in texts if not (text.isascii() and text.isdigit()))
    if odd:
        raise ConfigurationError(f"partition_ids holds {odd[0]!r}; expected decimal numbers")
    return sorted(texts, key=int)


@contextmanager
def opened(store_or_url: Any) -> "Iterator[Any]":
    """The store itself, or one opened from a URL, which is closed afterwards."""
    if not isinstance(store_or_url, str):
        yield store_or_url
        return
    store = open_store(store_or_url)
    try:
        yield store
    finally:
        store.close()


def checkpoints_by_partition(store: Any, scope: Scope) -> dict[str, Mapping[str, Any]]:
    """Ask any checkpoint store, ours or another, through the SDK's public interface."""
    method = getattr(store, "list_checkpoints", None)
    if method is None or iscoroutinefunction(method):
        raise ConfigurationError(
            f"{type(store).__name__} cannot be asked here; expected a store of the synchronous "
            "kind, or the URL of one"
        )
    rows = method(scope.fully_qualified_namespace, scope.eventhub_name, scope.consumer_group)
    return {row["partition_id"]: row for row in rows}


def after(partition: str, checkpoint: Mapping[str, Any]) -> EventPosition:
    """The position behind a checkpoint; by its offset only where there is no number.

    Raises:
        ConfigurationError: it has neither.
    """
    number, offset = checkpoint.get("sequence_number"), checkpoint.get("offset")
    if number is not None and int(number) >= 0:
        return EventPosition.from_sequence_number(int(number))
    if isinstance(offset, str) and offset:
        return EventPosition.from_offset(offset)
    raise ConfigurationError(
        f"the checkpoint of partition {partition} has neither a sequence number nor an offset"
    )


def for_missing(partition: str, missing: Missing) -> EventPosition:
    """Where a partition without a checkpoint begins.

    Raises:
        ConfigurationError: `missing` means nothing, or its dict does not name the partition.
    """
    if isinstance(missing, Mapping):
        named = {str(key): value for key, value in missing.items()}
        if partition not in named:
            raise ConfigurationError(
                f"partition {partition} has no checkpoint, and missing= does not name it"
            )
        return position_of(named[partition])
    if callable(missing):
        return position_of(missing(partition))
    return position_of(missing, MISSING)
