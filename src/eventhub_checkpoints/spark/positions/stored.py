"""What a store has, partition by partition, and what stands for a checkpoint that it lacks."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.receive.position import EventPosition, position_of
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.registry import open_store
from eventhub_checkpoints.spark.given import answers_at_once

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


@contextmanager
def opened(store_or_url: Any) -> Iterator[Any]:
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
    if not answers_at_once(store, "list_checkpoints"):
        raise ConfigurationError(
            f"{type(store).__name__} cannot be asked here; expected a store of the synchronous "
            "kind, or the URL of one"
        )
    return {row["partition_id"]: row for row in store.list_checkpoints(*scope)}


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
