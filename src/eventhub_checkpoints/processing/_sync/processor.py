# Derived from _async/processor.py by tools/unasync.py; edit that file.
"""Event processor: one object of your class per partition, with automatic checkpoints.

`EventProcessor` runs a client and passes its events, in order, to your class. It uses only the
client's public API, and works with every store.
"""

import logging
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import Any, Literal, Self

from azure.eventhub import CheckpointStore, EventData, EventHubConsumerClient, PartitionContext
from azure.eventhub.exceptions import EventHubError

from eventhub_checkpoints._shared._sync.client_check import (
    CLIENT_PREFETCH,
    ContextGuard,
    called,
    check_callable,
    check_handlers,
    check_store,
)
from eventhub_checkpoints._shared.arguments import with_checked_arguments
from eventhub_checkpoints._shared.callables import require_call
from eventhub_checkpoints._shared.client import explanation
from eventhub_checkpoints._shared.pickling import OfOneProcess
from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints._shared.settings import require_seconds
from eventhub_checkpoints._shared.start_position import client_position
from eventhub_checkpoints.errors import ConfigurationError, PoisonError
from eventhub_checkpoints.processing._sync.client_callbacks import ClientCallbacks
from eventhub_checkpoints.processing._sync.dispatcher import CheckpointManager
from eventhub_checkpoints.processing._sync.handover import HandoverStore
from eventhub_checkpoints.processing._sync.receive_loop import ReceiveLoop, is_handler
from eventhub_checkpoints.processing._sync.watchdog import (
    OnStall,
    check_watchdog,
    store_that_reopens,
)
from eventhub_checkpoints.processing.options import (
    MAX_BATCH_SIZE,
    Options,
    not_a_client,
    other_store,
    require_client_of,
    require_factory,
    require_hub,
    require_start,
)
from eventhub_checkpoints.processing.policy import DEFAULT_POLICY, Policy
from eventhub_checkpoints.processing.source import BatchClient, expiry_of, scope_of, store_of
from eventhub_checkpoints.processing.statistics import PartitionStats
from eventhub_checkpoints.sdk.consumer import UNKNOWN

log = logging.getLogger("eventhub_checkpoints")

Start = str | int | datetime


class EventProcessor(
    OfOneProcess,
    ContextGuard,
    pickle_instead="pass a function that creates client, store and processor in the other process",
):
    """Receives the events of a hub and processes them with your class, one object per partition.

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

    Events are finished when `process_events` returns, and the position is saved when `policy` asks
    for it. If it raises, it is called again after a pause, with each of the events alone, so that
    only an event that cannot be processed is handled by `on_poison`. No event is passed to it more
    than `attempts` times.

    Args:
        client: a callable that takes `checkpoint_store=` and returns the client, which is closed
            at the end; or an already constructed client whose `checkpoint_store` is the same
            object as `store`.
        processor: a class such as a subclass of `PartitionProcessor`, or a callable; called with
            the client's partition context and a `CheckpointManager` each time a partition is
            claimed.
        store: stores positions and ownership; it is not closed.
        starting_position: where a partition without a saved position starts: an offset, a sequence
            number (the events after it) or a datetime with a time zone (the events enqueued then
            or later); a mapping by partition id; or a callable that takes the partition id. None,
            and a partition missing from the mapping, means the beginning. (The client's own
            default is the end.)
        from_saved: whether a saved position takes precedence. If False, it does so only if
            positions are saved and a start position is set.
        save: whether positions are saved.
        policy: when positions are saved; None: only when the processor calls `update_checkpoint`.
        max_batch_size: maximum number of events per call of `process_events`.
        max_wait_time: seconds without an event after which `process_events` is called with an
            empty list; None: never. A sync client waits this long for a batch to fill up.
        owner_level: as for the client.
        prefetch: events of a partition that are requested at a time: 300 for an aio client. For a
            sync client 20, because it stays with a partition until that many have arrived; a
            higher value reads a backlog faster, but delays events that arrive one by one.
        max_pending: events of a partition that may be unfinished after `process_events` has
            returned; see `CheckpointManager.track`.
        attempts: maximum number of calls of `process_events` with an event, of which at most the
            first is made with other events too; see "Poison events" in the documentation. With 1,
            each call has one event.
        on_poison: `"stop"` processing the partition before the event, which `stopped`, `healthy`
            and `on_error` report; `"skip"` the event; or a callable that handles it, for example
            with a dead-letter queue: `on_poison(context, event, error)`; if it raises, the
            partition is stopped.
        on_invalid_checkpoint: `"raise"` `InvalidCheckpointError` if the hub does not have the
            position, for example after it was recreated; or `"restart"` at the start position.
        on_error: a plain function, called with a partition id, or None, and an error: one that
            neither stops anything nor is passed to `process_error`.
        drain_timeout: seconds that handlers have to end when a partition is closed; an aio handler
            is cancelled then.
        write_timeout: seconds that one write of a position may take.
        unhealthy_after: seconds for which the store may fail while `healthy` still returns True.
        stalled_after: seconds without progress after which a partition has stalled, if there is
            something to do; more than one call of `process_events` may take. None: this is not
            watched.
        on_stall: what happens to a partition that has stalled, besides a line in the log, in
            `stats` and in `healthy`: `"report"`, nothing more; `"reopen"`, the client opens its
            link again if that delivers nothing; or a callable, which is passed a `Stall`, in the
            background.
        handover: whether partitions are handed over between processors, instead of taken from one
            that processes them; see `HandoverStore`. An already constructed client has its own
            store: wrap that.

    Raises:
        ConfigurationError: an option is invalid, or has no effect on an already constructed
            client.
    """

    @with_checked_arguments
    def __init__(
        self,
        client: (
            Callable[..., EventHubConsumerClient | BatchClient]
            | EventHubConsumerClient
            | BatchClient
        ),
        processor: Callable[[PartitionContext, CheckpointManager], Any],
        *,
        store: CheckpointStore,
        starting_position: Start | Mapping[str, Start] | Callable[[str], Any] | None = None,
        from_saved: bool = True,
        save: bool = True,
        policy: Policy | None = DEFAULT_POLICY,
        max_batch_size: int = MAX_BATCH_SIZE,
        max_wait_time: float | None = None,
        owner_level: int | None = None,
        prefetch: int = CLIENT_PREFETCH,
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
        stalled_after: float | None = 300.0,
        on_stall: OnStall = "report",
        handover: bool = True,
    ) -> None:
        require_factory(processor)
        check_handlers(processor)
        functions = {
            "client": client,
            "processor": processor,
            "on_poison": on_poison,
            "starting_position": starting_position,
        }
        for name, function in functions.items():
            check_callable(name, function)
        check_store(store)
        check_watchdog(stalled_after, on_stall)
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
            stalled_after=stalled_after,
            on_stall=on_stall,
            handover=handover,
        )
        self._client_source: Any = client
        self._processor = processor
        self._is_ready = isinstance(client, EventHubConsumerClient | BatchClient)
        self._is_compared = True
        if self._is_ready:
            self._options.check_ready_client()
            client_store = store_of(client)
            self._is_compared = client_store is not UNKNOWN
            if client_store is None:
                raise other_store("no checkpoint_store")
            if self._is_compared and client_store is not store:
                raise other_store()
            if on_stall == "reopen":
                store_that_reopens(store)
        elif not callable(client):
            raise not_a_client("client is", client, EventHubConsumerClient)
        else:
            arguments = "checkpoint_store= alone, as functools.partial(CLIENT, ...) can"
            require_call("client", arguments, client, checkpoint_store=store)
            require_hub(client)
        self._receive_loop = ReceiveLoop()
        self._make_callbacks: Callable[[], ClientCallbacks] = partial(
            ClientCallbacks, processor, store, self._options, self._receive_loop.signal_end
        )
        self._callbacks = self._make_callbacks()

    def start(self) -> None:
        """Start receiving in the background; returns when the client is created.

        Raises:
            ConfigurationError: it was already started, or a start position names no partition; or
                start positions are set by partition, and the hub does not exist or refuses access.
            HubUnavailableError: start positions are set by partition, and the hub does not answer.
        """
        if not self._receive_loop.begin():
            raise ConfigurationError("the processor was started already; stop it first")
        try:
            self._start()
        except BaseException:
            self._receive_loop.end()
            raise

    def _start(self) -> None:
        callbacks = self._callbacks = self._make_callbacks()
        client: Any = self._client_source
        if not self._is_ready:
            client = called(partial(client, checkpoint_store=callbacks.client_store))
            if not isinstance(client, EventHubConsumerClient | BatchClient):
                raise not_a_client("client returned one", client, EventHubConsumerClient)
            if isinstance(callbacks.client_store, HandoverStore):
                callbacks.client_store.expires_after = expiry_of(client)
        delivers_batches = callbacks.run.delivers_batches = isinstance(client, BatchClient)
        if isinstance(self._processor, type):
            require_client_of(self._processor, delivers_batches=delivers_batches)
        if delivers_batches:
            self._options.check_batch_client(CLIENT_PREFETCH)
        callbacks.client, callbacks.is_ready = client, self._is_ready
        callbacks.is_compared = self._is_compared
        try:
            position = self._starting_position(client)
        except BaseException:
            self._close(client)
            raise
        if self._options.attempts == 1 < self._options.max_batch_size:
            log.warning(
                "attempts=1 leaves no second call to find the event of a batch that fails, so "
                "process_events is called with one event at a time; pass attempts=2 or more for "
                "batches, or max_batch_size=1 if that is meant"
            )
        self._client = client
        callbacks.watch()
        self._receive_loop.start(partial(self._receive, client, position))

    def _starting_position(self, client: Any) -> Any:
        """Return the `starting_position` argument for the client.

        Raises:
            ConfigurationError: one names no partition, or the function returned no start position;
                or they are set by partition, and the hub does not exist or refuses access.
            HubUnavailableError: they are set by partition, and the hub does not answer.
        """
        option = self._options.starting_position
        if not callable(option) and not isinstance(option, Mapping):
            return client_position(option)
        try:
            partition_ids = client.get_partition_ids()
        except EventHubError as error:
            raise explanation(error, scope_of(client)) from error
        self._options.check_partitions(partition_ids)
        starts: dict[str, Any] = {}
        for partition_id in partition_ids:
            if isinstance(option, Mapping):
                start = option.get(partition_id)
            else:
                start = called(option, partition_id)
            require_start(f"starting_position of partition {quoted(partition_id)}", start)
            starts[partition_id] = start
        self._callbacks.choice.start_of = starts.get
        return {key: client_position(start) for key, start in starts.items()}

    def _receive(self, client: Any, position: Any) -> None:
        callbacks, options = self._callbacks, self._options
        if callbacks.is_stopping:
            return
        of_events: dict[str, Any] = {}
        if not callbacks.run.delivers_batches:
            of_events = {
                "max_batch_size": options.max_batch_size,
                "owner_level": options.owner_level,
                "prefetch": options.prefetch,
            }
        try:
            client.receive_batch(
                callbacks.on_events,
                on_partition_initialize=callbacks.on_initialize,
                on_partition_close=callbacks.on_close,
                on_error=callbacks.on_error,
                starting_position=position,
                max_wait_time=options.max_wait_time,
                **of_events,
            )
        except Exception as error:
            callbacks.fail(error)
        finally:
            callbacks.wait_closed(callbacks.open_partitions)

    def _close(self, client: Any) -> None:
        if not self._is_ready:
            client.close()

    def stop(self, timeout: float | None = None) -> None:
        """Wait for running handlers, then save, release all partitions, and close the client.

        When called by a handler, it requests this and returns at once, because the processor waits
        for the handler; `run` then returns, and another call of `stop` waits for the rest.

        Args:
            timeout: seconds to wait; None: until it is done. (`drain_timeout` bounds the handlers
                of each partition, but a sync handler cannot be interrupted.)

        Raises:
            TimeoutError: a handler is still running; stopping continues, and `stop` may be called
                again.
            InvalidCheckpointError: the processor had stopped for this reason.
            BaseException: a handler raised one that is not an `Exception`, such as `SystemExit`.
        """
        if timeout is not None:
            require_seconds("timeout", timeout, or_zero=True)
        callbacks = self._callbacks
        # Also while it is still being started: it then ends by itself.
        callbacks.stop()
        if not self._receive_loop.is_running:
            return
        client = self._client
        if is_handler():
            self._receive_loop.request_stop(client.close)
            return
        if not self._receive_loop.stop(client.close, timeout):
            raise TimeoutError(f"the processor did not stop within {timeout:g} s")
        callbacks.stop_watching()
        callbacks.store.give_back()
        callbacks.withdraw()
        callbacks.sessions.close()
        self._close(client)
        self._receive_loop.end()
        if callbacks.error is not None:
            raise callbacks.error

    def wait(self) -> None:
        """Wait until there is a reason to stop: an error, or the end of the client.

        Raises:
            ConfigurationError: the processor was not started.
        """
        if self._receive_loop.is_unstarted:
            raise ConfigurationError("the processor was not started; call start() before wait()")
        self._receive_loop.wait()

    def run(self) -> None:
        """Start, and stop on SIGTERM, SIGINT, or an error.

        Signals are handled while it runs, if called in the main thread; otherwise call `stop` to
        have it return.

        Raises:
            InvalidCheckpointError: the hub does not have a position.
        """
        with self._receive_loop.signals():
            self.start()
            try:
                self.wait()
            finally:
                self.stop()

    def stats(self) -> dict[str, PartitionStats]:
        """Return statistics of the checkpoints of each open partition, by its id."""
        return self._callbacks.sessions.stats()

    def healthy(self) -> bool:
        """Return whether partitions are claimed, saved, and neither stopped nor stalled.

        For a liveness probe.

        Also returns False if the hub has not answered for `unhealthy_after`, or has events but
        delivers none to any partition, for example because the consumer group does not exist.
        """
        callbacks = self._callbacks
        if callbacks.error is not None or self.stopped:
            return False
        seconds = self._options.unhealthy_after
        if callbacks.store.has_failed_for(seconds) or callbacks.is_cut_off_for(seconds):
            return False
        return callbacks.sessions.writer.is_healthy() and callbacks.watchdog.is_healthy()

    @property
    def stopped(self) -> dict[str, PoisonError]:
        """Partitions whose processing has stopped, and the reason."""
        return dict(self._callbacks.run.stopped)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
