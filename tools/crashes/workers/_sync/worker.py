# Not derived: threads and a pool do here what tasks do there.
"""Worker with the synchronous client."""

import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any

from azure.core.credentials import AzureNamedKeyCredential
from azure.core.exceptions import AzureError
from azure.eventhub import (
    CheckpointStore,
    CloseReason,
    EventData,
    EventHubConsumerClient,
    PartitionContext,
)
from azure.eventhub.extensions.checkpointstoreblob import BlobCheckpointStore

from crashes.workers._sync.store import WatchedStore
from crashes.workers.diary import Diary, Fate, UnluckyError
from crashes.workers.orders import (
    CLIENT,
    DRAIN_SECONDS,
    EXPIRY_SECONDS,
    OFFICIAL_STORE,
    STORE,
    THREADS,
    TURN_SECONDS,
    WRITE_SECONDS,
    Orders,
)
from eventhub_checkpoints import (
    Checkpointer,
    CheckpointManager,
    CoalescingCheckpointStore,
    EventProcessor,
    HandoverStore,
    PartitionProcessor,
    open_store,
)
from eventhub_checkpoints.errors import CheckpointStoreError
from eventhub_checkpoints.stores.blob.protocol import EMULATOR_ACCOUNT, EMULATOR_KEY


class Worker:
    """Worker that processes until it is stopped."""

    def __init__(self, orders: Orders, diary: Diary) -> None:
        self.orders, self.diary, self.fate = orders, diary, Fate(orders)

    def run(self) -> None:
        """Process until SIGTERM."""
        with self.opened() as store, ThreadPoolExecutor(THREADS) as pool:
            watched = WatchedStore(store, self.diary, self.fate)
            ways: dict[str, Callable[[WatchedStore, Executor], None]] = {
                "pool": self.tracked,
                "handler": self.tracked,
                "processor": self.processor,
                "coalesced": self.coalesced,
                "each": self.each,
                "official": self.each,
            }
            ways[self.orders.way](watched, pool)

    def opened(self) -> Any:
        """Return the store, to be entered."""
        if self.orders.way != "official":
            return open_store(self.orders.url, **STORE)
        url, _, container = self.orders.url.rpartition("/")
        key = AzureNamedKeyCredential(EMULATOR_ACCOUNT, EMULATOR_KEY)
        return BlobCheckpointStore(url, container, credential=key, **OFFICIAL_STORE)

    def outermost(self, store: CheckpointStore) -> CheckpointStore:
        """Return the store for the client: one that hands partitions over, or takes them."""
        if not self.orders.hands_over:
            return store
        return HandoverStore(store, expires_after=EXPIRY_SECONDS)

    def process(self, event: EventData) -> None:
        """Take as long as the event takes.

        Raises:
            UnluckyError: it failed this time.
        """
        time.sleep(self.fate.seconds())
        if self.fate.is_failure():
            raise UnluckyError(event.sequence_number)

    def tracked(self, store: WatchedStore, pool: Executor) -> None:
        """Process with a `Checkpointer`."""
        orders, diary, outermost = self.orders, self.diary, self.outermost(store)
        checkpointer = Checkpointer(
            outermost,
            orders.policy,
            max_pending=orders.max_pending,
            max_unsaved=orders.max_unsaved,
            drain_timeout=DRAIN_SECONDS,
            write_timeout=WRITE_SECONDS,
        )

        def on_event(context: PartitionContext, event: EventData) -> None:
            ticket = checkpointer.track(context, event)
            claim = diary.open(context.partition_id, announces=False)
            claim.begun(event)

            def finish() -> None:
                with ticket:
                    try:
                        self.process(event)
                    except UnluckyError:
                        claim.failed(event)
                        raise
                    claim.done(event)
                    if self.fate.toss():
                        checkpointer.done(event)

            if orders.way == "pool":
                pool.submit(finish)
            else:
                finish()

        def on_initialize(context: PartitionContext) -> None:
            diary.open(context.partition_id, announces=True)
            checkpointer.on_initialize(context)

        def on_close(context: PartitionContext, reason: CloseReason) -> None:
            claim = diary.open(context.partition_id, announces=False)
            claim.closing(reason)
            checkpointer.on_close(context, reason)
            claim.closed()
            diary.forget(claim)

        with checkpointer:
            receive_until_told(orders, outermost, on_event, on_initialize, on_close)

    def coalesced(self, store: WatchedStore, pool: Executor) -> None:
        """Process with a checkpoint for every event, some of which are written."""
        policy = self.orders.policy
        with CoalescingCheckpointStore(store, policy, write_timeout=WRITE_SECONDS) as coalescing:
            self.each(coalescing, pool)

    def each(self, store: CheckpointStore, pool: Executor) -> None:
        """Process with a checkpoint for every event."""
        diary = self.diary

        def on_event(context: PartitionContext, event: EventData) -> None:
            claim = diary.open(context.partition_id, announces=False)
            claim.begun(event)
            self.process(event)
            claim.done(event)
            # An application goes on; the next checkpoint is higher.
            with suppress(AzureError, CheckpointStoreError):
                context.update_checkpoint(event)

        def on_initialize(context: PartitionContext) -> None:
            diary.open(context.partition_id, announces=True)

        def on_close(context: PartitionContext, reason: CloseReason) -> None:
            claim = diary.open(context.partition_id, announces=False)
            claim.closing(reason)
            diary.forget(claim)

        receive_until_told(self.orders, self.outermost(store), on_event, on_initialize, on_close)

    def processor(self, store: WatchedStore, pool: Executor) -> None:
        """Process with an event processor, which handles SIGTERM itself."""
        EventProcessor(
            partial(client_of, self.orders),
            partial(Processing, self, pool),
            store=store,
            policy=self.orders.policy,
            max_batch_size=self.orders.batch,
            max_wait_time=0.05,
            max_pending=self.orders.max_pending,
            drain_timeout=DRAIN_SECONDS,
            write_timeout=WRITE_SECONDS,
        ).run()


class Processing(PartitionProcessor):
    """Processes one partition, sequentially or with events finished separately."""

    def __init__(
        self,
        worker: Worker,
        pool: Executor,
        context: PartitionContext,
        checkpoints: CheckpointManager,
    ) -> None:
        super().__init__(context, checkpoints)
        self._worker, self._pool = worker, pool
        self._claim = worker.diary.open(context.partition_id, announces=True)

    def process_events(self, events: list[EventData]) -> None:
        worker, claim = self._worker, self._claim
        for event in events:
            claim.begun(event)
            if worker.orders.is_apart and worker.fate.toss():
                self._pool.submit(self._finish_apart, self.checkpoints.track(event), event)
                continue
            try:
                worker.process(event)
            except UnluckyError:
                claim.raised(event)
                raise
            claim.done(event)

    def _finish_apart(self, apart: Any, event: EventData) -> None:
        with suppress(UnluckyError):
            try:
                self._worker.process(event)
            except UnluckyError:
                self._claim.failed(event)
                apart.failed()
                raise
            self._claim.done(event)
            apart.done()

    def close(self, reason: CloseReason) -> None:
        self._claim.closing(reason)
        self._worker.diary.forget(self._claim)


def client_of(orders: Orders, checkpoint_store: CheckpointStore) -> EventHubConsumerClient:
    """Return a client that balances its load often."""
    return EventHubConsumerClient.from_connection_string(
        orders.connection, "$Default", checkpoint_store=checkpoint_store, **CLIENT
    )


def receive_until_told(
    orders: Orders,
    store: CheckpointStore,
    on_event: Callable[[PartitionContext, EventData], None],
    on_initialize: Callable[[PartitionContext], None],
    on_close: Callable[[PartitionContext, CloseReason], None],
) -> None:
    """Receive until SIGTERM."""
    is_told = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: is_told.set())
    client = client_of(orders, store)
    given: dict[str, Any] = {
        "on_event": on_event,
        "on_partition_initialize": on_initialize,
        "on_partition_close": on_close,
        "starting_position": "-1",
    }
    receiving = threading.Thread(target=client.receive, kwargs=given)
    receiving.start()
    # The kernel may give the signal to another thread, which does not wake this one.
    while not is_told.wait(TURN_SECONDS):
        pass
    while receiving.is_alive():
        # Repeated: a close before the client begins to receive has no effect.
        client.close()
        receiving.join(TURN_SECONDS)
