"""A hub as Arrow batches, and the commit of the positions that were handed out."""

import logging
import weakref
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Self

import pyarrow as pa
from azure.eventhub.aio import CheckpointStore

from eventhub_checkpoints._shared._async.client_check import ClosingContext, IterationGuard
from eventhub_checkpoints._shared.arguments import with_checked_arguments
from eventhub_checkpoints.aio.registry import open_store
from eventhub_checkpoints.errors import ConfigurationError, StaleCheckpointError, StoreError
from eventhub_checkpoints.receive.address import Address
from eventhub_checkpoints.receive.arrow import plan
from eventhub_checkpoints.receive.arrow._async.source import (
    IS_ASYNC,
    ArrowExport,
    Once,
    Source,
    call,
)
from eventhub_checkpoints.receive.batches import SCHEMA
from eventhub_checkpoints.receive.ranges import ReadSettings
from eventhub_checkpoints.receive.read_plan import Missing, Where, without_checkpoints
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.stores._async.abilities import ListsScopes

log = logging.getLogger(__name__)


async def committed(
    store: Any,
    scope: Scope,
    positions: plan.Positions,
    partition_ids: Collection[str] | None = None,
) -> dict[str, int]:
    """Save what was handed out and is not saved yet; return and raise as `Batches.commit`.

    Args:
        store: of the checkpoints.
        scope: of the checkpoints.
        positions: of all partitions.
        partition_ids: those that are saved; None: all.
    """
    saved: dict[str, int] = {}
    refused: StaleCheckpointError | None = None
    for partition, position in positions.unsettled().items():
        if partition_ids is not None and partition not in partition_ids:
            continue
        if not positions.covers(partition):
            continue  # it was lost meanwhile, and its next owner saves its own
        before = plan.stale_count(store)
        # As the SDK builds it; the offset is None where the transport has none.
        row = {**scope.as_dict(), "partition_id": partition, **position._asdict()}
        try:
            await store.update_checkpoint(row)
        except StaleCheckpointError as error:
            refused = error
        else:
            if plan.stale_count(store) == before:
                saved[partition] = position.sequence_number
        positions.settle(partition, position)
    if refused:
        raise refused
    return saved


@with_checked_arguments
def read_batches(
    hub: str | Address,
    scope: Scope | None = None,
    store: CheckpointStore | str | Mapping[str, Any] | None = None,
    *,
    partition_ids: Iterable[str | int] | None = None,
    start: Where | Mapping[str, Where] = "earliest",
    until: Where | Mapping[str, Where] = "latest",
    partitions_at_once: int = 4,
    settings: ReadSettings = plan.DEFAULT_SETTINGS,
    missing: Missing = "start",
) -> "Batches":
    """Read a hub from its checkpoints, or `start`, up to its current end.

    Store and hub are not contacted before the first batch is requested. The ranges are fixed at
    that moment: events that arrive later are not read. To read those, call `read_batches` again;
    with a store it continues after the committed positions.

    Args:
        hub: a connection string, or a `HubAddress` for anything else that the official client
            accepts, such as a credential of azure-identity.
        scope: the scope of the checkpoints. With a connection string, it also supplies the
            consumer group, and the hub if the string names none. Default: the hub's own names, and
            `$Default`.
        store: the store of the checkpoints, of the same kind (sync or async), whose tables exist;
            or what `open_store` accepts: then the store is closed with the batches. Default: none.
        partition_ids: default: all partitions of the hub.
        start: where a partition without a checkpoint begins: `"earliest"`, `"latest"`, a datetime
            with a zone, the sequence number of the first event to read, an `EventPosition`, or a
            dict of these by partition id. With `"latest"` nothing is read from such a partition,
            and a commit saves its current end.
        until: the first event of each partition that is *not* read, in the same forms.
        partitions_at_once: how many partitions are read concurrently, each over a separate
            connection. Each needs the memory of one task (see `ReadSettings.prefetch`), plus one
            batch.
        settings: how each partition is read. With `fail_on_data_loss=False`, expired events cause
            a warning instead of an error.
        missing: `"error"` refuses a partition that has had events and has no checkpoint; the cause
            may be a misspelt `scope`. By default such a partition begins at `start`; if the store
            has no checkpoint of the scope at all, a warning is logged.

    Raises:
        ConfigurationError: an argument is unusable. No message shows a connection string.
    """
    request = plan.ReadRequest.checked(
        hub, scope, partition_ids, start, until, partitions_at_once, settings, missing
    )
    return Batches(request, store)


class Batches(ArrowExport, IterationGuard, ClosingContext):
    """Batches of a hub, each from one partition; the batches of a partition come in order.

    An iterator that several threads, or several tasks of one loop, may share. It can be read once.

    Attributes:
        schema: the columns of the Spark source.
    """

    schema: pa.Schema = SCHEMA
    twin = "read_batches"

    def __init__(self, request: plan.ReadRequest, store: Any) -> None:
        if request.missing == "error" and store is None:
            raise ConfigurationError(plan.NO_STORE_FOR_MISSING)
        self._request = request
        self._owns_store = isinstance(store, str | Mapping)
        self._store = (
            open_store(store) if self._owns_store else plan.checked_store(store, is_async=IS_ASYNC)
        )
        self._positions = plan.Positions()
        self._opening: Once[Source] = Once()
        self._source: Source | None = None
        self._is_taken = False
        self._is_closed = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> pa.RecordBatch:
        """Return the next batch, of whichever partition has one first.

        Raises:
            ConfigurationError: there is no such hub, consumer group or partition, access is
                refused, or a range ends before it begins.
            DataLossError: events of the ranges are not in the hub.
            HubUnavailableError: the hub did not answer, or did not deliver the events it holds; or
                another receiver holds a partition by its owner level.
            StoreError: the checkpoints could not be read.
        """
        source = await self._opened()
        batch = await source.next() if source else None
        if batch is None:
            raise StopAsyncIteration
        self._positions.hand_out(batch)
        return batch

    async def commit(self) -> dict[str, int]:
        """Save, for each partition, the position of the last batch that was handed out.

        It covers every batch handed out before, including the one being processed: commit when
        the results are safe. Batches handed out meanwhile to other threads or tasks are not
        covered. Positions already saved cost nothing.

        Returns:
            The sequence numbers saved by this call, by partition id. A partition is left out if
            another writer has saved a later position: the store keeps that position, and logs it.

        Raises:
            ConfigurationError: there is no store.
            StaleCheckpointError: another writer has saved a later position, and the store has
                `on_stale="raise"`; all other partitions are saved.
            StoreError: the store could not be written. The next commit tries again what was not
                saved.
        """
        if self._store is None:
            raise ConfigurationError(plan.NO_STORE)
        return await committed(self._store, self._request.scope, self._positions)

    async def to_table(self) -> pa.Table:
        """Return all remaining batches as one table in memory.

        Raises:
            ConfigurationError: `to_table` or `close` was called before: the table would be empty.
        """
        if self._is_closed:
            raise ConfigurationError(plan.CLOSED)
        if self._is_taken:
            raise ConfigurationError(plan.ONE_TABLE)
        self._is_taken = True
        batches = []
        async for batch in self:
            batches.append(batch)
        return pa.Table.from_batches(batches, SCHEMA)

    async def close(self) -> None:
        """Stop receiving, and close the store if it was opened here. Does not commit."""
        self._is_closed = True
        await self._opening.end()
        if self._source:
            await self._source.close()
        if self._owns_store:
            await self._store.close()

    async def _opened(self) -> Source | None:
        """Return the source, planned and opened at the first call; None once it was closed."""
        if not self._is_closed:
            await self._opening.result(self._open)
        return None if self._is_closed else self._source

    async def _open(self) -> Source:
        request = self._request
        stored = await self._checkpoints() if self._store is not None else {}
        needed = request.scope if request.missing == "error" else None
        planned = await call(
            request.plan.resolve, request.address, stored, request.settings, needed
        )
        self._positions.handed_out.update(planned.passed)
        source = self._source = Source(request, planned.ranges)
        if self._is_closed:
            # Closed by a caller that did not wait for the plan, so there was no source to stop yet.
            source.abandon()
        # A caller that leaves a loop early and forgets to close must leave no thread behind.
        weakref.finalize(self, source.abandon)
        return source

    async def _checkpoints(self) -> dict[str, Any]:
        """Return the checkpoints by partition id; log or raise why there may be none."""
        scope = self._request.scope
        rows = await self._store.list_checkpoints(*scope)
        if not rows:
            message = without_checkpoints(scope, await self._stored_scopes())
            if self._request.missing == "error":
                raise ConfigurationError(message)
            log.warning("%s (its partitions begin at the position in start=)", message)
        return {row["partition_id"]: row for row in rows}

    async def _stored_scopes(self) -> list[Scope] | None:
        """Return the scopes in the store; None where it cannot list them."""
        if not isinstance(self._store, ListsScopes):
            return None
        try:
            return await self._store.list_scopes()
        except StoreError:
            return None
