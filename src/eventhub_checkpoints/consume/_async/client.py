"""Client that receives the partitions of a consumer group in Arrow batches."""

import logging
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from azure.eventhub import CloseReason
from azure.eventhub.aio import CheckpointStore, PartitionContext

from eventhub_checkpoints._shared._async.background import Signal
from eventhub_checkpoints._shared._async.client_check import check_store
from eventhub_checkpoints._shared.arguments import with_checked_arguments
from eventhub_checkpoints._shared.client import is_stolen
from eventhub_checkpoints._shared.error_messages import described
from eventhub_checkpoints._shared.offset_words import START_OF_STREAM
from eventhub_checkpoints.consume._async.member import GroupMember
from eventhub_checkpoints.consume._async.worker import Worker
from eventhub_checkpoints.consume.partition_batch import PartitionBatch
from eventhub_checkpoints.consume.partition_reader import Buffer, PartitionReader
from eventhub_checkpoints.consume.settings import hub_of, settings_of
from eventhub_checkpoints.errors import ConfigurationError, DataLossError, HubUnavailableError
from eventhub_checkpoints.processing.source import BatchClient
from eventhub_checkpoints.receive.address import StoppedError
from eventhub_checkpoints.receive.amqp.address import HubAddress
from eventhub_checkpoints.receive.arrow._async.source import call
from eventhub_checkpoints.receive.hub import list_partitions, partition_properties
from eventhub_checkpoints.receive.position import EventPosition, after, position_of
from eventhub_checkpoints.receive.read_plan import PartitionPositions
from eventhub_checkpoints.receive.reader import unless_stopped

log = logging.getLogger("eventhub_checkpoints")

Start = str | int | datetime | EventPosition
OnBatch = Callable[[PartitionContext, PartitionBatch], Awaitable[None]]
OnOpen = Callable[[PartitionContext], Awaitable[None]]
OnClose = Callable[[PartitionContext, CloseReason], Awaitable[None]]
OnError = Callable[[PartitionContext | None, Exception], Awaitable[None]]


async def nothing(*_: object) -> None:
    """Do nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Callbacks:
    """What a client calls, as `EventHubConsumerClient.receive_batch` documents it."""

    on_batch: OnBatch
    on_open: OnOpen
    on_stop: OnOpen
    on_close: OnClose
    on_error: OnError


class PartitionWork:
    """One partition of a client, from when it is claimed until it is released.

    It is the `Source` of the session that an `EventProcessor` begins for it.
    """

    shares_thread = False
    newest = attempt = None

    def __init__(
        self,
        client: "BatchConsumerClient",
        reader: PartitionReader,
        on_stop: Callable[[], Awaitable[None]],
    ) -> None:
        self.client = client
        self.reader = reader
        self._on_stop = on_stop
        self.worker: Worker | None = None
        self.reached: int | None = None
        self.is_stopping = self.is_handling = False

    @property
    def is_lost(self) -> bool:
        """Return whether the worker has ended without closing the partition."""
        return self.worker is not None and self.worker.is_over and not self.is_stopping

    @property
    def is_drained(self) -> bool:
        """Return whether the partition is being closed."""
        return self.is_stopping

    def handler(self) -> str | None:
        """Return the line that the handler of a batch has reached; None: none runs."""
        return self.worker.handler() if self.worker is not None and self.is_handling else None

    @contextmanager
    def handling(self) -> Iterator[None]:
        """Mark the block as the call of a handler."""
        self.is_handling = True
        try:
            yield
        finally:
            self.is_handling = False

    def end(self) -> None:
        """Deliver nothing more."""
        self.is_stopping = True
        self.reader.stop()

    async def stop(self) -> None:
        """Have the worker close the partition, unless it does; another one calls this."""
        if not self.is_stopping:
            self.end()
            await self._on_stop()
            if self.worker is not None:
                self.worker.interrupt()


def where_of(start: Start) -> EventPosition:
    """Return the position that the official client begins at for a value."""
    if isinstance(start, int):
        return EventPosition.from_sequence_number(start)
    return EventPosition.from_offset(start) if isinstance(start, str) else position_of(start)


class GroupContext(PartitionContext):
    """Context of a partition, as the official client passes it.

    Attributes:
        source: what delivers its events.
    """

    source: PartitionWork


class BatchConsumerClient(BatchClient):
    """Client that shares a hub with other members of its group, and receives Arrow batches.

    A processor class with `process_batch` needs it in the place of `EventHubConsumerClient`:

    ```python
    processor = EventProcessor(
        partial(BatchConsumerClient, connection_string, "$Default", max_rows=50_000),
        Writer,
        store=store,
    )
    ```

    Args:
        hub: a connection string or a `HubAddress`.
        consumer_group: default: that of the address, or `$Default`.
        checkpoint_store: of ownerships and checkpoints.
        settings: `max_rows`, `max_bytes`, `max_wait`, `columns`, `buffer_bytes`,
            `load_balancing_interval`, `load_balancing_strategy`,
            `partition_ownership_expiration_interval`, `owner_level`, `fail_on_data_loss` and
            `receive_path`; see `consume_batches`.

    Attributes:
        has_joined: whether a round of load balancing has succeeded.

    Raises:
        ConfigurationError: an argument is unusable. No message shows a connection string.
    """

    @with_checked_arguments
    def __init__(
        self,
        hub: str | HubAddress,
        consumer_group: str | None = None,
        *,
        checkpoint_store: CheckpointStore,
        **settings: Any,
    ) -> None:
        self._address = hub_of(hub, consumer_group)
        check_store(checkpoint_store)
        self.settings = settings_of("BatchConsumerClient", settings)
        self.store = checkpoint_store
        self.scope = self._address.scope()
        self.eventhub_name = self.scope.eventhub_name
        self.expires_after = self.settings.expires_after
        self._member = GroupMember(
            checkpoint_store, self.scope, self.settings, self._list_partitions
        )
        self._buffer = Buffer(self.settings.buffer_bytes)
        self._open: dict[str, PartitionWork] = {}
        self._signal: Signal | None = None
        self._closing = threading.Event()
        self._failure: Exception | None = None
        self.has_joined = False

    async def get_partition_ids(self) -> list[str]:
        """Return the ids of the hub's partitions.

        Raises:
            ConfigurationError: there is no such hub, or access is refused.
            HubUnavailableError: it did not answer.
        """
        # The official client's own query has no limit: it waits for a hub that refuses the link of
        # its token.
        seconds = self.settings.read.operation_timeout
        return list(await self._ask(partial(list_partitions, self._address, timeout=seconds)))

    async def _list_partitions(self) -> list[str]:
        """Return the ids of the hub's partitions, which have every start position's.

        Raises:
            ConfigurationError: there is a position of a partition that does not exist.
        """
        partition_ids = await self.get_partition_ids()
        if isinstance(self._start, Mapping):
            starts = {id_: where_of(start) for id_, start in self._start.items()}
            PartitionPositions("the start position", None, starts).require(partition_ids)
        return partition_ids

    async def get_partition_properties(self, partition_id: str) -> dict[str, Any]:
        """Return what `EventHubConsumerClient.get_partition_properties` does.

        Raises:
            ConfigurationError: there is no such hub or partition, or access is refused.
            HubUnavailableError: it did not answer.
        """
        seconds = self.settings.read.operation_timeout
        ask = partial(partition_properties, self._address, [partition_id], timeout=seconds)
        properties = (await self._ask(ask))[partition_id]
        return {
            "eventhub_name": self.eventhub_name,
            "id": partition_id,
            "beginning_sequence_number": properties.first_sequence_number,
            "last_enqueued_sequence_number": properties.next_sequence_number - 1,
            "last_enqueued_offset": properties.last_enqueued_offset,
            "last_enqueued_time_utc": properties.last_enqueued_time,
            "is_empty": properties.is_empty,
        }

    @property
    def has_failed(self) -> bool:
        """Return whether an error ends it, which `receive_batch` raises."""
        return self._failure is not None

    async def _ask(self, read: Callable[[], Any]) -> Any:
        """Return the answer of the hub, or raise once the client is closed: a hub may be mute."""
        try:
            return await call(unless_stopped, self._closing, read)
        except StoppedError:
            raise HubUnavailableError(f"{self._address} has not answered before the end") from None

    @property
    def _is_closing(self) -> bool:
        return self._closing.is_set()

    @with_checked_arguments
    async def receive_batch(
        self,
        on_event_batch: OnBatch,
        *,
        on_partition_initialize: OnOpen = nothing,
        on_partition_stop: OnOpen = nothing,
        on_partition_close: OnClose = nothing,
        on_error: OnError = nothing,
        starting_position: Start | Mapping[str, Start] = START_OF_STREAM,
        max_wait_time: float | None = None,
    ) -> None:
        """Receive until the client is closed; the callbacks are those of the official client.

        Each partition has a task, or for a synchronous client a thread, of its own.

        Args:
            on_event_batch: called with a batch, whose attribute `arrow` has the columns.
            on_partition_initialize: called when a partition is opened.
            on_partition_stop: called when it is to be closed, while the handler may still run.
            on_partition_close: called when it is closed; then it is released.
            on_error: called with an error, and the context of its partition or None.
            starting_position: where a partition without a checkpoint begins.
            max_wait_time: seconds without an event after which the handler is called with an empty
                batch; None: never.

        Raises:
            ConfigurationError: the hub or consumer group does not exist, or access is refused.
            DataLossError: events have expired before they were read, and that is an error.
        """
        self._callbacks = Callbacks(
            on_batch=on_event_batch,
            on_open=on_partition_initialize,
            on_stop=on_partition_stop,
            on_close=on_partition_close,
            on_error=on_error,
        )
        self._start, self._max_idle = starting_position, max_wait_time
        signal = self._signal = Signal()
        try:
            while not self._is_closing:
                await self._balance()
                await signal.wait(self._member.pause)
        finally:
            await self._close_all()
        if self._failure is not None:
            raise self._failure

    async def close(self) -> None:
        """Stop receiving; `receive_batch` returns when all partitions are closed and released."""
        self._closing.set()
        if self._signal is not None:
            self._signal.set()

    async def _balance(self) -> None:
        """Claim for one round; open what was won, and close what was lost."""
        try:
            lost, won = await self._member.balance([*self._open])
        except ConfigurationError as error:
            self.fail(error)
            return
        except Exception as error:
            if self._is_closing:
                return
            log.warning("%s: a round of load balancing failed: %s", self.scope, described(error))
            await self._report(None, error)
            return
        self.has_joined = True
        for partition_id in lost:
            if work := self._open.get(partition_id):
                await work.stop()
        # Counted first, so that the first of them does not fill the shares of the others.
        self._buffer.partitions = len(self._open) + len(won)
        for partition_id, checkpoint in won.items():
            if not self._is_closing:
                self._begin(partition_id, checkpoint)

    def _begin(self, partition_id: str, checkpoint: Mapping[str, Any] | None) -> None:
        position = self._position(partition_id, checkpoint)
        reader = PartitionReader(
            self._address, partition_id, position, self.settings, self._buffer, self._max_idle
        )
        context = GroupContext(*self.scope, partition_id, self.store)
        on_stop = partial(self._callbacks.on_stop, context)
        work = self._open[partition_id] = context.source = PartitionWork(self, reader, on_stop)
        work.worker = Worker(f"partition-{partition_id}", self._work, work, context)

    def _position(self, partition_id: str, checkpoint: Mapping[str, Any] | None) -> EventPosition:
        """Return where a partition begins: after its checkpoint, or at the starting position."""
        if checkpoint is not None:
            with suppress(ConfigurationError):  # it says nothing, as one that was reset
                return after(partition_id, checkpoint)
        start: Any = self._start
        if isinstance(start, Mapping):
            start = start.get(partition_id, START_OF_STREAM)
        return where_of(start)

    async def _work(self, work: PartitionWork, context: GroupContext) -> None:
        """Receive one partition until it is stopped or fails, and close it."""
        callbacks, reader = self._callbacks, work.reader
        try:
            await callbacks.on_open(context)
            await call(reader.open)
            while (batch := await call(reader.next)) is not None:
                if batch:
                    work.reached = batch.numbers[-1]
                with work.handling():
                    await callbacks.on_batch(context, batch)
        except Exception as error:
            if not work.is_stopping:
                await self._failed(context, error)
        finally:
            await self._end(work, context)

    async def _failed(self, context: GroupContext, error: Exception) -> None:
        """Handle an error of a partition: it is closed, and may be claimed again."""
        if isinstance(error, ConfigurationError | DataLossError):
            self.fail(error)
            return
        if is_stolen(error):
            log.info("partition %s was taken by another consumer", context.partition_id)
        else:
            log.warning("partition %s is closed: %s", context.partition_id, described(error))
        await self._report(context, error)

    def fail(self, error: Exception) -> None:
        """Have `receive_batch` end, and raise an error."""
        self._failure = self._failure or error
        self._closing.set()
        if self._signal is not None:
            self._signal.set()

    async def _end(self, work: PartitionWork, context: GroupContext) -> None:
        """Close a partition, and release it."""
        partition_id = context.partition_id
        is_closed = self._is_closing and self._failure is None
        reason = CloseReason.SHUTDOWN if is_closed else CloseReason.OWNERSHIP_LOST
        work.end()
        try:
            await call(work.reader.close)
            await self._callbacks.on_close(context, reason)
        except Exception as error:
            log.warning("partition %s: on_partition_close raised", partition_id, exc_info=error)
            await self._report(context, error)
        await self._release(partition_id)
        self._open.pop(partition_id, None)
        self._buffer.partitions = len(self._open)

    async def _release(self, partition_id: str) -> None:
        try:
            await self._member.release(partition_id)
        except Exception as error:
            log.warning(
                "the ownership of partition %s stays until it expires: %s",
                partition_id,
                described(error),
            )

    async def _report(self, context: GroupContext | None, error: Exception) -> None:
        try:
            await self._callbacks.on_error(context, error)
        except Exception as raised:
            log.warning("on_error raised", exc_info=raised)

    async def _close_all(self) -> None:
        self._closing.set()
        works = [*self._open.values()]
        for work in works:
            await work.stop()
        for work in works:
            if work.worker is not None:
                await work.worker.wait()
        # What was claimed and not opened, because this was closed or has failed meanwhile.
        for partition_id in [*self._member.claimed]:
            await self._release(partition_id)
