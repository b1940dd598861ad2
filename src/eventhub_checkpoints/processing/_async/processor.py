"""A class for each partition: the events in order, and what was processed saved.

`EventProcessor` runs a client and hands its events to your class. It is built on the client's
public API only, and works with every store.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from types import TracebackType
from typing import Any, Literal, Self

from azure.eventhub import EventData
from azure.eventhub.aio import CheckpointStore, EventHubConsumerClient, PartitionContext

from eventhub_checkpoints._shared._async.client_check import (
    PREFETCH,
    ContextGuard,
    called,
    check_handlers,
    check_plain,
    check_store,
)
from eventhub_checkpoints._shared.client_internals import UNKNOWN, store_of
from eventhub_checkpoints.errors import ConfigurationError, PoisonError
from eventhub_checkpoints.processing._async.checkpoint_manager import (
    Apart,
    CheckpointManager,
    PartitionProcessor,
)
from eventhub_checkpoints.processing._async.client_callbacks import ClientCallbacks
from eventhub_checkpoints.processing._async.receive_loop import ReceiveLoop, is_handler
from eventhub_checkpoints.processing.options import (
    Options,
    no_client,
    require_call,
    require_made,
    require_maker,
    require_ready,
    require_same_store,
)
from eventhub_checkpoints.processing.policy import DEFAULT_POLICY, Policy
from eventhub_checkpoints.processing.statistics import PartitionStats

__all__ = ["Apart", "CheckpointManager", "EventProcessor", "PartitionProcessor"]

Start = str | int | datetime


class EventProcessor(ContextGuard):
    """Receives a hub's events and has a class of yours process them, one object per partition.

    ```python
    class Orders(PartitionProcessor):
        async def process_events(self, events):
            ...

    processor = EventProcessor(
        partial(EventHubConsumerClient.from_connection_string, connection_string, "$Default"),
        Orders,
        store=store,
    )
    await processor.run()
    ```

    Events that `process_events` returned from are finished, and the position is saved by
    `policy`. Where it raises, the events are given again, after a pause, `attempts` times in all;
    then one by one, so that only an event that cannot be processed is left to `on_poison`.

    Args:
        client: a callable that is given `checkpoint_store=` and returns the client, which is
            closed at the end; or a client that is ready, whose `checkpoint_store` is the same
            object as `store`.
        processor: a class such as one of `PartitionProcessor`, or a callable; called with the
            client's partition context and a `CheckpointManager` for each claim of a partition.
        store: where positions and ownership live; it is not closed.
        starting_position: where a partition starts of which nothing is saved: an offset, a
            sequence number (the events behind it) or a datetime with a time zone (the events
            enqueued then or later); a mapping by partition id; or a callable that is given the
            partition id. None, and what a mapping does not name, is the beginning. (The client's
            own default is the end.)
        from_saved: whether a saved position comes first. With False it does so only where
            positions are saved and a start position is given.
        save: whether positions are saved.
        policy: when they are; None: only when the processor calls `update_checkpoint`.
        max_batch_size: events that `process_events` is given at most.
        max_wait_time: seconds without an event after which it is given none; None: it never is.
            A sync client waits that long for a batch to become full.
        owner_level: as the client's.
        prefetch: events of a partition that are asked for at a time: 300 in an aio client. In a
            sync one 20, because it stays with a partition until so many have arrived; more are
            faster where a backlog is read, and later where events come in one by one.
        max_pending: events of a partition that may be unfinished after `process_events` has
            returned; see `CheckpointManager.track`.
        attempts: how often events are given whose handler raises.
        on_poison: `"stop"` processing the partition before the event, which is told by `stopped`,
            `healthy` and `on_error`; `"skip"` it; or a callable that takes it, for a dead-letter
            queue: `on_poison(context, event, error)`; the partition is stopped if that raises.
        on_invalid_checkpoint: `"raise"` `InvalidCheckpointError` when the hub has no such
            position, as after it was created anew; or `"restart"` at the start position.
        on_error: a plain function that is given a partition id, or None, and an error: what
            neither stops anything nor belongs to `process_error`.
        drain_timeout: seconds that handlers have to end when a partition is closed; an aio
            handler is cancelled then.
        write_timeout: seconds that one write of a position may take.
        unhealthy_after: seconds for which the store may fail while `healthy` is still true.

    Raises:
        ConfigurationError: an option cannot work, or not with a client that is ready.
    """

    def __init__(
        self,
        client: Callable[..., EventHubConsumerClient] | EventHubConsumerClient,
        processor: Callable[[PartitionContext, CheckpointManager], Any],
        *,
        store: CheckpointStore,
        starting_position: Start | Mapping[str, Start] | Callable[[str], Any] | None = None,
        from_saved: bool = True,
        save: bool = True,
        policy: Policy | None = DEFAULT_POLICY,
        max_batch_size: int = 300,
        max_wait_time: float | None = None,
        owner_level: int | None = None,
        prefetch: int = PREFETCH,
        max_pending: int = 10_000,
        attempts: int = 5,
        on_poison: (
            Literal["stop", "skip"] | Callable[[PartitionContext, EventData, Exception], Any]
        ) = "stop",
        on_invalid_checkpoint: Literal["raise", "restart"] = "raise",
        on_error: Callable[[str | None, Exception], object] | None = None,
        drain_timeout: float = 30.0,
        write_timeout: float = 10.0,
        unhealthy_after: float = 60.0,
    ) -> None:
        require_maker(processor)
        check_handlers(processor)
        check_plain("on_poison", on_poison)
        check_store(store)
        self._options = Options(
            starting_position=starting_position,
            from_saved=from_saved,
            save=save,
            policy=policy,
            max_batch_size=max_batch_size,
            max_wait_time=max_wait_time,
            owner_level=owner_level,
            prefetch=prefetch,
            max_pending=max_pending,
            attempts=attempts,
            on_poison=on_poison,
            on_invalid_checkpoint=on_invalid_checkpoint,
            on_error=on_error,
            drain_timeout=drain_timeout,
            write_timeout=write_timeout,
            unhealthy_after=unhealthy_after,
        )
        self._given: Any = client
        self._is_ready = isinstance(client, EventHubConsumerClient)
        self._is_compared = True
        if self._is_ready:
            require_ready(self._options.needs_wrapping)
            self._is_compared = (found := store_of(client)) is not UNKNOWN
            if self._is_compared:
                require_same_store(found, store)
        elif not callable(client):
            raise no_client("client is", client, EventHubConsumerClient)
        else:
            given = "checkpoint_store= alone, as functools.partial(CLIENT, ...) can"
            require_call("client", given, client, checkpoint_store=store)
        self._life = ReceiveLoop()
        self._make_processing: Callable[[], ClientCallbacks] = partial(
            ClientCallbacks, processor, store, self._options, self._life.tell
        )
        self._processing = self._make_processing()

    async def start(self) -> None:
        """Receive from now on; returns when the client is made.

        Raises:
            ConfigurationError: it was started already, or a start position names no partition.
                Or start positions are by partition, and there is no such hub, or it refuses access.
            HubUnavailableError: start positions are by partition, and the hub does not answer.
        """
        if not self._life.begin():
            raise ConfigurationError("the processor was started already; stop it first")
        try:
            await self._start()
        except BaseException:
            self._life.end()
            raise

    async def _start(self) -> None:
        processing = self._processing = self._make_processing()
        client: Any = self._given
        if not self._is_ready:
            client = await called(partial(client, checkpoint_store=processing.store))
            require_made(client, EventHubConsumerClient)
        processing.vetting.client = client
        processing.is_ready = processing.vetting.goes_by_offset = self._is_ready
        processing.is_compared = self._is_compared
        try:
            position = await processing.starts.ask(client)
        except BaseException:
            await self._close(client)
            raise
        self._client = client
        self._life.start(partial(self._receive, client, position))

    async def _receive(self, client: Any, position: Any) -> None:
        processing, options = self._processing, self._options
        if processing.store.is_stopping:
            return
        try:
            await client.receive_batch(
                processing.on_events,
                on_partition_initialize=processing.on_initialize,
                on_partition_close=processing.on_close,
                on_error=processing.on_error,
                starting_position=position,
                max_batch_size=options.max_batch_size,
                max_wait_time=options.max_wait_time,
                owner_level=options.owner_level,
                prefetch=options.prefetch,
            )
        except Exception as error:
            processing.fail(error)
        finally:
            await processing.settled()

    async def _close(self, client: Any) -> None:
        if not self._is_ready:
            await client.close()

    async def stop(self, timeout: float | None = None) -> None:
        """Have running handlers end, save the last, release all partitions, and close the client.

        One that is called by a handler asks for that and returns at once, because the processor
        waits for the handler; `run` then returns, and another `stop` waits for the rest.

        Args:
            timeout: seconds to wait; None: until it is done. (`drain_timeout` bounds the handlers
                of each partition, but no sync handler can be cut off.)

        Raises:
            TimeoutError: a handler still runs; stopping goes on, and `stop` may be called again.
            InvalidCheckpointError: it had stopped for this reason.
            BaseException: a handler raised one that is no `Exception`, such as `SystemExit`.
        """
        processing = self._processing
        # Also where it is still being started: it ends by itself then.
        processing.stop()
        if not self._life.is_running:
            return
        client = self._client
        if is_handler():
            await self._life.ask(client.close)
            return
        if not await self._life.stop(client.close, timeout):
            raise TimeoutError(f"the processor did not stop within {timeout:g} s")
        await processing.stop_watching()
        await processing.store.give_back()
        await processing.claims.close()
        await self._close(client)
        self._life.end()
        if processing.error is not None:
            raise processing.error

    async def wait(self) -> None:
        """Wait until there is a reason to stop: an error, or that the client has ended."""
        await self._life.until_over()

    async def run(self) -> None:
        """Start, and stop on SIGTERM, SIGINT, or a reason of its own.

        Signals are taken while it runs, where the main thread calls it; another way to have it
        return is `stop`.

        Raises:
            InvalidCheckpointError: the hub has no such position.
        """
        with self._life.signals():
            await self.start()
            try:
                await self.wait()
            finally:
                await self.stop()

    def stats(self) -> dict[str, PartitionStats]:
        """How the saving of each open partition is doing, by its id."""
        return self._processing.claims.stats()

    def healthy(self) -> bool:
        """Whether partitions are claimed and saved, and none is stopped: for a liveness probe.

        False also if the hub has not answered for `unhealthy_after`, or has events and delivers
        none to any partition, as where the consumer group does not exist.
        """
        processing = self._processing
        if processing.error is not None or self.stopped:
            return False
        seconds = self._options.unhealthy_after
        if processing.store.has_failed_for(seconds) or processing.is_cut_off_for(seconds):
            return False
        return processing.claims.saver.is_healthy()

    @property
    def stopped(self) -> dict[str, PoisonError]:
        """Partitions that are not processed any further, and why."""
        return dict(self._processing.handling.stopped)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.stop()
