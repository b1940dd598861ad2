# Derived from _async/worker.py by tools/unasync.py; edit that file.
"""Worker: a client, a store, and one of the ways of saving."""

from contextlib import suppress
from functools import partial
from typing import Any

from azure.core.credentials import AzureNamedKeyCredential
from azure.core.exceptions import AzureError
from azure.eventhub import CheckpointStore, CloseReason, EventData, PartitionContext

from crashes.workers._sync.client import (
    OF_PROCESSORS,
    OfficialStore,
    Tasks,
    begin,
    client_of,
    receive_until_told,
    session_here,
)
from crashes.workers._sync.store import WatchedStore
from crashes.workers.diary import Claim, Diary, Fate, UnluckyError
from crashes.workers.orders import (
    DRAIN_SECONDS,
    EXPIRY_SECONDS,
    OFFICIAL_STORE,
    STORE,
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
from eventhub_checkpoints._shared._sync.compat import sleep
from eventhub_checkpoints.errors import CheckpointStoreError
from eventhub_checkpoints.stores.azure_storage.account import EMULATOR_ACCOUNT, EMULATOR_KEY


class Worker:
    """Worker that processes until it is stopped."""

    def __init__(self, orders: Orders, diary: Diary) -> None:
        self.orders, self.diary, self.fate = orders, diary, Fate(orders)

    def run(self) -> None:
        """Process until SIGTERM."""
        ways = {
            "pool": self.tracked,
            "handler": self.tracked,
            "processor": self.processor,
            "coalesced": self.coalesced,
            "each": self.each,
            "official": self.each,
        }
        with self.opened() as store, Tasks() as tasks:
            ways[self.orders.way](WatchedStore(store, self.diary, self.fate), tasks)

    def opened(self) -> Any:
        """Return the store, to be entered."""
        if self.orders.way != "official":
            return open_store(self.orders.url, **STORE)
        url, _, container = self.orders.url.rpartition("/")
        key = AzureNamedKeyCredential(EMULATOR_ACCOUNT, EMULATOR_KEY)
        return OfficialStore(url, container, credential=key, **OFFICIAL_STORE)

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
        sleep(self.fate.seconds())
        if self.fate.is_failure():
            raise UnluckyError(event.sequence_number)

    def tracked(self, store: WatchedStore, tasks: Tasks) -> None:
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

        def finish(tracked: Any, claim: Claim, event: EventData) -> None:
            with tracked:
                try:
                    self.process(event)
                except UnluckyError:
                    claim.failed(event)
                    raise
                claim.done(event)
                if self.fate.toss():
                    checkpointer.done(event)

        def finish_apart(tracked: Any, claim: Claim, event: EventData) -> None:
            with suppress(UnluckyError):
                finish(tracked, claim, event)

        def on_event(context: PartitionContext, event: EventData) -> None:
            tracked = checkpointer.track(context, event)
            claim = session_here(diary, context.partition_id)
            claim.begun(event)
            if orders.way == "pool":
                tasks.start(finish_apart, tracked, claim, event)
            else:
                finish(tracked, claim, event)

        def on_initialize(context: PartitionContext) -> None:
            begin(diary, context.partition_id)
            checkpointer.on_initialize(context)

        def on_close(context: PartitionContext, reason: CloseReason) -> None:
            claim = diary.open(context.partition_id, announces=False)
            claim.closing(reason)
            checkpointer.on_close(context, reason)
            claim.closed()
            diary.forget(claim)

        with checkpointer:
            receive_until_told(orders, outermost, on_event, on_initialize, on_close)

    def coalesced(self, store: WatchedStore, tasks: Tasks) -> None:
        """Process with a checkpoint for every event, some of which are written."""
        policy = self.orders.policy
        coalescing = CoalescingCheckpointStore(store, policy, write_timeout=WRITE_SECONDS)
        with coalescing:
            self.each(coalescing, tasks)

    def each(self, store: CheckpointStore, tasks: Tasks) -> None:
        """Process with a checkpoint for every event."""
        diary = self.diary

        def on_event(context: PartitionContext, event: EventData) -> None:
            claim = session_here(diary, context.partition_id)
            claim.begun(event)
            self.process(event)
            claim.done(event)
            # An application goes on; the next checkpoint is higher.
            with suppress(AzureError, CheckpointStoreError):
                context.update_checkpoint(event)

        def on_initialize(context: PartitionContext) -> None:
            begin(diary, context.partition_id)

        def on_close(context: PartitionContext, reason: CloseReason) -> None:
            claim = diary.open(context.partition_id, announces=False)
            claim.closing(reason)
            diary.forget(claim)

        outermost = self.outermost(store)
        receive_until_told(self.orders, outermost, on_event, on_initialize, on_close)

    def processor(self, store: WatchedStore, tasks: Tasks) -> None:
        """Process with an event processor, which handles SIGTERM itself."""
        EventProcessor(
            partial(client_of, self.orders),
            partial(Processing, self, tasks),
            store=store,
            policy=self.orders.policy,
            max_batch_size=self.orders.batch,
            max_pending=self.orders.max_pending,
            drain_timeout=DRAIN_SECONDS,
            write_timeout=WRITE_SECONDS,
            **OF_PROCESSORS,
        ).run()


class Processing(PartitionProcessor):
    """Processes one partition, sequentially or with events finished separately."""

    def __init__(
        self,
        worker: Worker,
        tasks: Tasks,
        context: PartitionContext,
        checkpoints: CheckpointManager,
    ) -> None:
        super().__init__(context, checkpoints)
        self._worker, self._tasks = worker, tasks
        self._claim = worker.diary.open(context.partition_id, announces=True)

    def process_events(self, events: list[EventData]) -> None:
        worker, claim = self._worker, self._claim
        for event in events:
            claim.begun(event)
            if worker.orders.is_apart and worker.fate.toss():
                self._tasks.start(self._finish_apart, self.checkpoints.track(event), event)
                continue
            try:
                worker.process(event)
            except UnluckyError:
                claim.raised(event)
                raise
            claim.done(event)

    def _finish_apart(self, apart: Any, event: EventData) -> None:
        try:
            self._worker.process(event)
        except UnluckyError:
            self._claim.failed(event)
            apart.failed()
        else:
            self._claim.done(event)
            apart.done()

    def close(self, reason: CloseReason) -> None:
        self._claim.closing(reason)
        self._worker.diary.forget(self._claim)
