"""A consumer group as Arrow batches, for a loop that commits them itself."""

import logging
import math
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import asdict
from typing import Any, NamedTuple, Self

import pyarrow as pa
from azure.eventhub import CloseReason
from azure.eventhub.aio import CheckpointStore, PartitionContext

from eventhub_checkpoints._shared._async.client_check import (
    ClosingContext,
    IterationGuard,
    called,
    check_callable,
)
from eventhub_checkpoints._shared._async.stop_signals import on_stop_signals
from eventhub_checkpoints._shared.arguments import with_checked_arguments
from eventhub_checkpoints._shared.client import is_stolen
from eventhub_checkpoints._shared.settings import (
    SECONDS,
    is_seconds,
    require,
    require_flag,
    require_seconds,
    require_type,
)
from eventhub_checkpoints._shared.wrapping import innermost
from eventhub_checkpoints.aio.registry import open_store
from eventhub_checkpoints.consume._async.client import BatchConsumerClient
from eventhub_checkpoints.consume._async.inbox import (
    Delivered,
    Idle,
    Inbox,
    Notice,
    Session,
)
from eventhub_checkpoints.consume._async.worker import Worker
from eventhub_checkpoints.consume.balancer import Strategy
from eventhub_checkpoints.consume.partition_batch import PartitionBatch
from eventhub_checkpoints.consume.settings import ConsumeSettings
from eventhub_checkpoints.errors import StaleCheckpointError
from eventhub_checkpoints.processing._async.handover import HandoverStore, is_handing_over
from eventhub_checkpoints.processing._async.receive_loop import to_the_end
from eventhub_checkpoints.receive.amqp.address import HubAddress
from eventhub_checkpoints.receive.arrow import plan
from eventhub_checkpoints.receive.arrow._async.batches import committed
from eventhub_checkpoints.receive.arrow._async.source import IS_ASYNC
from eventhub_checkpoints.receive.batches import schema_of
from eventhub_checkpoints.receive.hub import checked_ids
from eventhub_checkpoints.receive.position import EventPosition
from eventhub_checkpoints.receive.ranges import ReceivePath
from eventhub_checkpoints.receive.read_plan import CheckpointPosition, PartitionPositions, Where

log = logging.getLogger("eventhub_checkpoints")

OnPartition = Callable[[str], Any]
TWIN = "consume_batches of eventhub_checkpoints.aio.arrow"


@with_checked_arguments
def consume_batches(
    hub: str | HubAddress,
    consumer_group: str | None = None,
    *,
    store: CheckpointStore | str | Mapping[str, Any],
    start: Where | Mapping[str, Where] = "earliest",
    max_rows: int = 10_000,
    max_bytes: int = 16 * 2**20,
    max_wait: float = 1.0,
    max_idle: float | None = None,
    columns: Iterable[str] | None = None,
    buffer_bytes: int = 64 * 2**20,
    on_assigned: OnPartition | None = None,
    on_lost: OnPartition | None = None,
    handover: bool = True,
    drain_timeout: float = 30.0,
    load_balancing_interval: float = 30.0,
    load_balancing_strategy: Strategy = "greedy",
    partition_ownership_expiration_interval: float | None = None,
    owner_level: int = 0,
    fail_on_data_loss: bool = True,
    receive_path: ReceivePath = "auto",
) -> "ConsumedBatches":
    """Join a consumer group, and read its hub in Arrow batches, for ever.

    The partitions of the hub are shared with the other members of the group: other calls, official
    clients in any language, `EventProcessor`. Store and hub are not contacted before the first
    batch is requested.

    Args:
        hub: a connection string, or a `HubAddress` for anything else that the official client
            accepts. Kafka is refused.
        consumer_group: default: that of the address, or `$Default`.
        store: of ownerships and checkpoints, of the same kind (sync or async), whose tables exist;
            or what `open_store` accepts: then the store is closed with the batches.
        start: where a partition without a checkpoint begins: `"earliest"`, `"latest"`, a datetime
            with a zone, the sequence number of the first event to read, an `EventPosition`, or a
            dict of these by partition id.
        max_rows: rows with which a batch is complete.
        max_bytes: bytes of bodies with which it is.
        max_wait: seconds that an event waits for others of its batch; with 0, a batch has what has
            arrived while the previous one was processed.
        max_idle: seconds without a batch after which an empty one is returned, for work that is due
            on a quiet hub, too; None: never.
        columns: names of the columns; properties that are not named are not decoded. Default: all.
        buffer_bytes: bytes of bodies that all partitions together may hold in memory; each has an
            equal share, so that a slow one leaves the others theirs.
        on_assigned: called with the id of a partition before its first batch.
        on_lost: called with the id of a partition after its last batch, for example to close its
            file. If the partition is handed over, a commit in this call still covers it.
        handover: whether partitions are handed over between members, instead of taken from one
            that reads them; see `HandoverStore`.
        drain_timeout: seconds for which a partition that another member has asked for waits for the
            commit of what was returned of it.
        load_balancing_interval: seconds between two rounds of claims.
        load_balancing_strategy: `"greedy"` claims all that is missing at once, `"balanced"` one
            partition in a round.
        partition_ownership_expiration_interval: seconds after which an ownership that was not
            renewed counts as expired; None: six times the interval.
        owner_level: of the links. The hub disconnects readers of the group with a lower or the same
            one, so that each partition is read once.
        fail_on_data_loss: False continues after a warning where events have expired.
        receive_path: see `ReadSettings`.

    Raises:
        ConfigurationError: an argument is unusable. No message shows a connection string.
    """
    for name, function in (("on_assigned", on_assigned), ("on_lost", on_lost)):
        is_valid = function is None or callable(function)
        require(name, function, is_valid, "None, or a function of a partition id")
        check_callable(name, function, twin=TWIN)
    is_valid = max_idle is None or is_seconds(max_idle)
    require("max_idle", max_idle, is_valid, f"None, or {SECONDS}")
    require_flag("handover", handover)
    require_seconds("drain_timeout", drain_timeout, or_zero=True)
    settings = ConsumeSettings(
        max_rows=max_rows,
        max_bytes=max_bytes,
        max_wait=max_wait,
        columns=columns,
        buffer_bytes=buffer_bytes,
        load_balancing_interval=load_balancing_interval,
        load_balancing_strategy=load_balancing_strategy,
        partition_ownership_expiration_interval=partition_ownership_expiration_interval,
        owner_level=owner_level,
        fail_on_data_loss=fail_on_data_loss,
        receive_path=receive_path,
    )
    positions = PartitionPositions.checked("start", start)
    starts = positions.positions or positions.everywhere
    assert starts is not None
    require_type("store", store, store is not None, "the store of the group's checkpoints")
    used: Any = store
    if owns_store := isinstance(store, str | Mapping):
        used = open_store(store)
    else:
        plan.checked_store(store, is_async=IS_ASYNC)
    if handover:
        used = HandoverStore(used, expires_after=settings.expires_after)
    client = BatchConsumerClient(hub, consumer_group, checkpoint_store=used, **asdict(settings))
    hooks = Hooks(on_assigned, on_lost)
    limits = Limits(drain_timeout, math.inf if max_idle is None else max_idle)
    return ConsumedBatches(client, starts, hooks, limits, owns_store=owns_store)


class Hooks(NamedTuple):
    """Functions of the user, which are called between two batches."""

    on_assigned: OnPartition | None
    on_lost: OnPartition | None


class Limits(NamedTuple):
    """Seconds that something may take; see `consume_batches`."""

    drain_timeout: float
    max_idle: float


class ConsumedBatches(IterationGuard, ClosingContext):
    """Batches of the partitions that a member of a consumer group holds, as they arrive.

    The batches of a partition come in order. They end when `close` is called, and in a `with` block
    of the main thread on SIGTERM or Ctrl-C, too: the loop ends after the batch at hand.

    Attributes:
        schema: of the batches.
        lost: partitions that the last commit has left out, because they are no longer held, and the
            sequence number of the last event returned of each; its next owner reads again what was
            not committed before.
    """

    twin = "consume_batches"

    def __init__(
        self,
        client: BatchConsumerClient,
        start: EventPosition | Mapping[str, EventPosition],
        hooks: Hooks,
        limits: Limits,
        *,
        owns_store: bool,
    ) -> None:
        self.schema: pa.Schema = schema_of(client.settings.names)
        self.lost: dict[str, int] = {}
        self._client, self._start, self._hooks = client, start, hooks
        self._limits, self._owns_store = limits, owns_store
        self._inbox = Inbox(self._taken)
        self._positions = plan.Positions()
        self._uncommitted: dict[str, int] = {}
        self._sessions: dict[str, Session] = {}
        self._worker: Worker | None = None
        self._is_closed = False
        # Several threads may begin to iterate at once.
        self._starting = threading.Lock()
        self._signals = ExitStack()

    async def __aenter__(self) -> Self:
        self._signals.enter_context(on_stop_signals(self._request_end, once=True))
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        self._signals.close()
        await self.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> pa.RecordBatch:
        """Return the next batch, of whichever partition has one first.

        Raises:
            ConfigurationError: there is no such hub, consumer group or partition, or access is
                refused.
            DataLossError: events have expired before they were read, and that is an error.
            HubUnavailableError: the hub did not answer before the first partitions were claimed.
                Later the member tries again, and logs that.
            StoreError: likewise for the store.
        """
        with self._starting:
            if self._worker is None and not self._is_closed:
                self._worker = Worker("consume-batches", self._receive)
        while (item := await self._inbox.next(self._limits.max_idle)) is not None:
            if isinstance(item, Idle):
                return pa.RecordBatch.from_pylist([], self.schema)
            if isinstance(item, Delivered):
                return item.batch.arrow
            await self._notified(item)
        raise StopAsyncIteration

    @with_checked_arguments
    async def commit(self, partition_ids: Iterable[str] | None = None) -> dict[str, int]:
        """Save, for each partition, the position of the last batch that was returned.

        It covers every batch returned before, including the one being processed: commit when the
        results are safe.

        Args:
            partition_ids: partitions whose results are safe, for example because their files are
                closed; None: all.

        Returns:
            The sequence numbers saved by this call, by partition id. A partition is left out if it
            is no longer held, see `lost`, or if another writer has saved a later position.

        Raises:
            ConfigurationError: `partition_ids` are no ids.
            StaleCheckpointError: a partition was left out, and the store has `on_stale="raise"`;
                all others are saved.
            StoreError: the store could not be written. The next commit tries again what was not
                saved.
        """
        ids = None if partition_ids is None else checked_ids("partition_ids", partition_ids)
        self.lost = {}
        while self._uncommitted:  # to which the workers may add
            partition_id, number = self._uncommitted.popitem()
            self.lost[partition_id] = number
        for partition_id, number in self.lost.items():
            log.warning(
                "partition %s is no longer held: the events up to %d that were not committed "
                "before are read again by its next owner",
                partition_id,
                number,
            )
        client = self._client
        try:
            saved = await committed(client.store, client.scope, self._positions, ids)
        except StaleCheckpointError:
            raise
        except BaseException:
            # The next commit tells of them again.
            self._uncommitted.update(self.lost)
            raise
        finally:
            await self._inbox.wake()
        if self.lost and raises_stale(self._client.store):
            partition_id, number = next(iter(self.lost.items()))
            way_out = "the partition is no longer held, and its next owner reads the events again"
            raise StaleCheckpointError(partition_id, number, None, way_out)
        return saved

    async def close(self) -> None:
        """Leave the group: stop receiving, release all partitions, and close an own store.

        Does not commit.
        """
        with self._starting:
            if self._is_closed:
                return
            self._is_closed = True
        await self._client.close()
        await self._inbox.close()
        if self._worker is not None:
            await self._worker.wait()
        store = self._client.store
        if isinstance(store, HandoverStore):
            await store.withdraw()
            store = store.store
        if self._owns_store:
            await store.close()

    def _request_end(self) -> None:
        """End the iteration; what was returned can still be committed."""
        Worker("end", self._inbox.finish)

    async def _receive(self) -> None:
        try:
            await self._client.receive_batch(
                self._deliver,
                on_partition_initialize=self._opened,
                on_partition_stop=self._stopped,
                on_partition_close=self._closed,
                on_error=self._failed,
                starting_position=self._start,
            )
        except Exception as error:
            await self._inbox.end(error)

    async def _deliver(self, context: PartitionContext, batch: PartitionBatch) -> None:
        await self._inbox.put(Delivered(self._sessions[context.partition_id], batch))

    async def _opened(self, context: PartitionContext) -> None:
        session = self._sessions[context.partition_id] = Session(context.partition_id)
        await self._inbox.notify(Notice(session, is_lost=False))

    async def _stopped(self, context: PartitionContext) -> None:
        if (session := self._sessions.get(context.partition_id)) is not None:
            await self._inbox.drop(session)

    def _taken(self, item: Delivered) -> None:
        """Record the position of a batch that is returned."""
        # Also a lower one than before: a hub that was created again begins at 0.
        position = CheckpointPosition(*item.batch.last)
        self._positions.handed_out[item.session.partition_id] = position

    async def _closed(self, context: PartitionContext, reason: CloseReason) -> None:
        partition_id = context.partition_id
        if self._is_closed:
            return
        session = self._sessions.pop(partition_id)
        is_lost = session.is_ending and reason is CloseReason.OWNERSHIP_LOST
        await self._inbox.notify(Notice(session, is_lost=True))
        if not is_lost:
            return  # its link has failed, or an error ends all: until then it was held
        if self._client.has_failed:
            # Nobody has asked for it. The error comes after the notice, and both let who iterates
            # commit what was returned.
            await self._inbox.until(lambda: session.is_over, self._limits.drain_timeout)
            return
        if is_handing_over(self._client.store, *self._client.scope, partition_id):

            def is_done() -> bool:
                is_over = session.is_over or self._inbox.is_finished
                return is_over and self._positions.is_settled(partition_id)

            if not await self._inbox.until(is_done, self._limits.drain_timeout):
                log.warning(
                    "partition %s is handed over before what was returned of it is committed: "
                    "no commit came within %g s",
                    partition_id,
                    self._limits.drain_timeout,
                )
        position = self._positions.forget(partition_id)
        if position is not None:
            self._uncommitted[partition_id] = position.sequence_number

    async def _failed(self, context: PartitionContext | None, error: Exception) -> None:
        if context is None and not self._client.has_joined:
            self._client.fail(error)
        elif context is not None and is_stolen(error):
            # Another consumer reads it, so that a later commit might take that one's back.
            await self._stopped(context)

    async def _notified(self, notice: Notice) -> None:
        """Pass a notice to the user's function."""
        hook = self._hooks.on_lost if notice.is_lost else self._hooks.on_assigned
        try:
            if hook is not None:
                # A task that waits for a batch may be cancelled at any time.
                await to_the_end(called, hook, notice.session.partition_id)
        finally:
            if notice.is_lost:
                notice.session.is_over = True
                await self._inbox.wake()


def raises_stale(store: Any) -> bool:
    """Return whether a store raises an error where it refuses an older checkpoint."""
    settings = getattr(innermost(store), "settings", None)
    return getattr(settings, "on_stale", "log") == "raise"
