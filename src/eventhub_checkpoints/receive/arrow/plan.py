"""Planning shared by both kinds of `read_batches`: the hub, the ranges, what a commit covers."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from inspect import iscoroutinefunction
from typing import Any, Self

import pyarrow as pa

from eventhub_checkpoints._shared.connection_string import ConnectionString
from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints._shared.settings import is_count, require, require_type
from eventhub_checkpoints._shared.wrapping import innermost
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.receive.address import DEFAULT_CONSUMER_GROUP, Address
from eventhub_checkpoints.receive.amqp.address import HubAddress
from eventhub_checkpoints.receive.ranges import ReadSettings
from eventhub_checkpoints.receive.read_plan import (
    CheckpointPosition,
    Missing,
    ReadPlan,
    Where,
    checked_missing,
)
from eventhub_checkpoints.records import Scope

DEFAULT_SETTINGS = ReadSettings(rows_per_batch=10_000)
"""Larger batches than in a Spark task: DuckDB, Polars and Parquet work best with many rows."""

NO_STORE = "there is no store to commit to; pass store= to read_batches"

NO_STORE_FOR_MISSING = (
    "missing='error' concerns partitions without a checkpoint; pass store= to read_batches, too"
)

CLOSED = "the batches are closed, and a table of them would be empty; read before close()"
ONE_TABLE = (
    "the batches were read into a table already, and a second one would be empty: keep the first, "
    "or call read_batches again, which reads the hub anew"
)

CLOSE_TIMEOUT = 5.0
"""Seconds that `close` waits for the threads; a hub that hangs must not block program exit."""


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """Arguments of `read_batches`, checked as far as possible without a hub."""

    address: Address
    scope: Scope
    plan: ReadPlan
    partitions_at_once: int
    settings: ReadSettings
    missing: Missing = "start"

    @classmethod
    def checked(
        cls,
        hub: str | Address,
        scope: Scope | None,
        partition_ids: Iterable[str | int] | None,
        start: Where | Mapping[str, Where],
        until: Where | Mapping[str, Where],
        partitions_at_once: int,
        settings: ReadSettings,
        missing: Missing = "start",
    ) -> Self:
        """Check the arguments against one another; raises as `read_batches`."""
        address = address_of(hub, scope)
        at_once = partitions_at_once
        require("partitions_at_once", at_once, is_count(at_once), "a whole number, 1 or more")
        is_settings = isinstance(settings, ReadSettings)
        require("settings", settings, is_settings, "ReadSettings of eventhub_checkpoints.arrow")
        plan = ReadPlan.checked(partition_ids, start, until)
        missing = checked_missing("missing", missing)
        return cls(address, scope or address.scope(), plan, at_once, settings, missing)


def address_of(hub: str | Address, scope: Scope | None) -> Address:
    """Return the hub's address.

    Raises:
        ConfigurationError: it is not a hub, or not the hub of the checkpoints. The message does
            not show the value passed.
    """
    require_type("scope", scope, scope is None or isinstance(scope, Scope), "a Scope")
    if isinstance(hub, str):
        # The scope may supply consumer group and hub.
        group = scope.consumer_group if scope else DEFAULT_CONSUMER_GROUP
        name = ConnectionString.with_secret(hub).hub or (scope.eventhub_name if scope else None)
        hub = HubAddress.from_connection_string(hub, group, eventhub_name=name)
    require_type(
        "hub",
        hub,
        isinstance(hub, Address),
        "a connection string or a HubAddress. A client cannot be used here: pass its arguments to "
        "HubAddress.from_credential",
    )
    if scope is not None and hub.eventhub_name.casefold() != scope.eventhub_name.casefold():
        raise ConfigurationError(
            f"scope is of hub {quoted(scope.eventhub_name)}, but hub is "
            f"{quoted(hub.eventhub_name)}; pass the scope of the same hub"
        )
    return hub


@dataclass(slots=True)
class Positions:
    """Positions up to which each partition was handed out, and was saved.

    Rule: a commit covers every batch that was handed out before it, and nothing else.
    """

    handed_out: dict[str, CheckpointPosition] = field(default_factory=dict)
    settled: dict[str, CheckpointPosition] = field(default_factory=dict)

    def hand_out(self, batch: pa.RecordBatch) -> None:
        """Record the last row of a batch, which is from one partition."""
        last = batch.slice(batch.num_rows - 1).select(["partition", "sequenceNumber", "offset"])
        (row,) = last.to_pylist()
        self.reach(row["partition"], CheckpointPosition(row["sequenceNumber"], row["offset"]))

    def reach(self, partition_id: str, position: CheckpointPosition) -> None:
        """Record the position of the last row that was handed out of a partition."""
        known = self.handed_out.get(partition_id)
        # Of two threads that take batches of a partition, the later one may record its own first.
        if known is None or known.sequence_number < position.sequence_number:
            self.handed_out[partition_id] = position

    def covers(self, partition_id: str) -> bool:
        """Return whether anything that was handed out of a partition is not forgotten."""
        return partition_id in self.handed_out

    def settle(self, partition_id: str, position: CheckpointPosition) -> None:
        """Record the position of a partition that was saved, unless it is forgotten meanwhile."""
        reached = self.handed_out.get(partition_id)
        if reached is not None and reached.sequence_number >= position.sequence_number:
            self.settled[partition_id] = position

    def is_settled(self, partition_id: str) -> bool:
        """Return whether everything that was handed out of a partition is saved."""
        return self.handed_out.get(partition_id) == self.settled.get(partition_id)

    def forget(self, partition_id: str) -> CheckpointPosition | None:
        """Forget a partition; return the position that was not saved, if any."""
        reached = self.handed_out.pop(partition_id, None)
        saved = self.settled.pop(partition_id, None)
        return None if reached == saved else reached

    def unsettled(self) -> dict[str, CheckpointPosition]:
        """Return the positions that are not saved yet, by partition id."""
        return {
            partition: position
            # Another thread may forget a partition.
            for partition, position in [*self.handed_out.items()]
            if self.settled.get(partition) != position
        }


def stale_count(store: Any) -> int:
    """Return how often a store of this package has refused to go back to an older position.

    A wrapper has no count of its own.
    """
    counters: Mapping[str, int] = getattr(innermost(store), "counters", {})
    return counters.get("stale_checkpoints", 0)


def checked_store(store: Any, *, is_async: bool) -> Any:
    """Return the store unchanged; None for None.

    Raises:
        ConfigurationError: it is not a store, or it is asynchronous where a synchronous one is
            needed, or the reverse.
    """
    if store is None:
        return None
    method = getattr(store, "list_checkpoints", None)
    is_store = callable(method) and not isinstance(store, type)
    kind, module = ("asynchronous", ".aio") if is_async else ("synchronous", "")
    require_type(
        "store",
        store,
        is_store and iscoroutinefunction(method) is is_async,
        f"a store of the {kind} kind, or the URL of one, as for "
        f"eventhub_checkpoints{module}.open_store",
    )
    return store
