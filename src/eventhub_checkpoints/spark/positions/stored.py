"""What a store has, partition by partition, and what stands for a checkpoint that it lacks."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints.abilities import ListsScopes
from eventhub_checkpoints.errors import ConfigurationError, StoreError
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


def held_scopes(store: Any) -> Sequence[Scope] | None:
    """The scopes in a store; None where it cannot list them."""
    if not isinstance(store, ListsScopes):
        return None
    try:
        return store.list_scopes()
    except StoreError:
        return None


def lacks_position(partition_ids: Iterable[str], missing: Missing) -> bool:
    """Whether some of these partitions, none of which has a checkpoint, have no position."""
    if isinstance(missing, Mapping):
        return not {str(key) for key in missing}.issuperset(partition_ids)
    return isinstance(missing, str) and missing == "error"


def for_missing(partition: str, missing: Missing, scope: Scope) -> EventPosition:
    """Where a partition without a checkpoint begins.

    Raises:
        ConfigurationError: `missing` means nothing, or its dict does not name the partition.
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
