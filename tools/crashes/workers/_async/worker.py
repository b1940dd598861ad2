"""Worker: a client, a store, and one of the ways of saving."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import pyarrow as pa
from azure.core.credentials import AzureNamedKeyCredential
from azure.core.exceptions import AzureError
from azure.eventhub import CloseReason, EventData
from azure.eventhub.aio import CheckpointStore, PartitionContext

from crashes.workers._async.batch_loop import BatchLoop, Row, rows_of
from crashes.workers._async.client import (
    OF_PROCESSORS,
    OfficialStore,
    Tasks,
    begin,
    client_of,
    receive_until_told,
    session_here,
)
from crashes.workers._async.store import WatchedStore
from crashes.workers.diary import Claim, Diary, Fate, UnluckyError
from crashes.workers.orders import (
    DRAIN_SECONDS,
    EXPIRY_SECONDS,
    OFFICIAL_STORE,
    STORE,
    WRITE_SECONDS,
    Orders,
)
from eventhub_checkpoints._shared._async.compat import sleep
from eventhub_checkpoints.aio import (
    Checkpointer,
    CheckpointManager,
    CoalescingCheckpointStore,
    EventProcessor,
    HandoverStore,
    PartitionProcessor,
    open_store,
)
from eventhub_checkpoints.aio.arrow import BatchConsumerClient
from eventhub_checkpoints.errors import CheckpointStoreError
from eventhub_checkpoints.processing._async.handover import is_handing_over
from eventhub_checkpoints.processing._async.session import names_of
from eventhub_checkpoints.stores.azure_storage.account import EMULATOR_ACCOUNT, EMULATOR_KEY


class Worker:
    """Worker that processes until it is stopped."""

    def __init__(self, orders: Orders, diary: Diary) -> None:
        self.orders, self.diary, self.fate = orders, diary, Fate(orders)
        self.handing_over: CheckpointStore | None = None

    async def run(self) -> None:
        """Process until SIGTERM."""
        ways = {
            "pool": self.tracked,
            "handler": self.tracked,
            "processor": self.processor,
            "coalesced": self.coalesced,
            "each": self.each,
            "batches": self.batches,
            "batch-processor": self.batch_processor,
            "official": self.each,
        }
        async with self.opened() as store, Tasks() as tasks:
            await ways[self.orders.way](WatchedStore(store, self.diary, self.fate), tasks)

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

    async def process(self, event: EventData | Row) -> None:
        """Take as long as the event takes.

        Raises:
            UnluckyError: it failed this time.
        """
        await sleep(self.fate.seconds())
        if self.fate.is_failure():
            raise UnluckyError(event.sequence_number)

    async def tracked(self, store: WatchedStore, tasks: Tasks) -> None:
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

        async def finish(tracked: Any, claim: Claim, event: EventData) -> None:
            async with tracked:
                try:
                    await self.process(event)
                except UnluckyError:
                    claim.failed(event)
                    raise
                claim.done(event)
                if self.fate.toss():
                    checkpointer.done(event)

        async def finish_apart(tracked: Any, claim: Claim, event: EventData) -> None:
            with suppress(UnluckyError):
                await finish(tracked, claim, event)

        async def on_event(context: PartitionContext, event: EventData) -> None:
            tracked = await checkpointer.track(context, event)
            claim = session_here(diary, context.partition_id)
            claim.begun(event)
            if orders.way == "pool":
                await tasks.start(finish_apart, tracked, claim, event)
            else:
                await finish(tracked, claim, event)

        async def on_initialize(context: PartitionContext) -> None:
            begin(diary, context.partition_id)
            await checkpointer.on_initialize(context)

        async def on_close(context: PartitionContext, reason: CloseReason) -> None:
            claim = diary.open(context.partition_id, announces=False)
            claim.closing(reason, hands_over=is_handing_over(outermost, *names_of(context)))
            await checkpointer.on_close(context, reason)
            claim.closed()
            diary.forget(claim)

        async with checkpointer:
            await receive_until_told(orders, outermost, on_event, on_initialize, on_close)

    async def coalesced(self, store: WatchedStore, tasks: Tasks) -> None:
        """Process with a checkpoint for every event, some of which are written."""
        policy = self.orders.policy
        coalescing = CoalescingCheckpointStore(store, policy, write_timeout=WRITE_SECONDS)
        async with coalescing:
            await self.each(coalescing, tasks)

    async def each(self, store: CheckpointStore, tasks: Tasks) -> None:
        """Process with a checkpoint for every event."""
        diary = self.diary

        async def on_event(context: PartitionContext, event: EventData) -> None:
            claim = session_here(diary, context.partition_id)
            claim.begun(event)
            await self.process(event)
            claim.done(event)
            # An application goes on; the next checkpoint is higher.
            with suppress(AzureError, CheckpointStoreError):
                await context.update_checkpoint(event)

        async def on_initialize(context: PartitionContext) -> None:
            begin(diary, context.partition_id)

        async def on_close(context: PartitionContext, reason: CloseReason) -> None:
            claim = diary.open(context.partition_id, announces=False)
            claim.closing(reason)
            diary.forget(claim)

        outermost = self.outermost(store)
        await receive_until_told(self.orders, outermost, on_event, on_initialize, on_close)

    async def batches(self, store: WatchedStore, tasks: Tasks) -> None:
        """Process in a loop over the batches of the group."""
        await BatchLoop(self.orders, self.diary, self.process, store).run()

    async def processor(self, store: WatchedStore, tasks: Tasks) -> None:
        """Process with an event processor, which handles SIGTERM itself."""
        await EventProcessor(
            partial(self.client, client_of, self.orders),
            partial(Processing, self, tasks),
            store=store,
            max_batch_size=self.orders.batch,
            **self.of_processors,
        ).run()

    async def batch_processor(self, store: WatchedStore, tasks: Tasks) -> None:
        """Process with an event processor of Arrow batches."""
        make = partial(BatchConsumerClient, **self.orders.batching)
        await EventProcessor(
            partial(self.client, make, self.orders.connection),
            partial(BatchProcessing, self, tasks),
            store=store,
            **self.of_processors,
        ).run()

    @property
    def of_processors(self) -> dict[str, Any]:
        """Return the arguments of both event processors."""
        return {
            "policy": self.orders.policy,
            "max_pending": self.orders.max_pending,
            "drain_timeout": DRAIN_SECONDS,
            "write_timeout": WRITE_SECONDS,
            **OF_PROCESSORS,
        }

    def client(self, make: Callable[..., Any], *of: Any, checkpoint_store: CheckpointStore) -> Any:
        """Return the client of a processor, and remember the store that it is given."""
        self.handing_over = checkpoint_store
        return make(*of, checkpoint_store=checkpoint_store)


class RecordedProcessor(PartitionProcessor):
    """Processor of one partition whose session is in the journal."""

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

    async def close(self, reason: CloseReason) -> None:
        asked = is_handing_over(self._worker.handing_over, *names_of(self.context))
        self._claim.closing(reason, hands_over=asked)
        self._worker.diary.forget(self._claim)


class BatchProcessing(RecordedProcessor):
    """Processes one partition in batches, and asks for some checkpoints itself."""

    async def process_batch(self, batch: pa.RecordBatch) -> None:
        """Process the rows in order."""
        worker, claim = self._worker, self._claim
        for row in rows_of(batch):
            claim.begun(row)
            try:
                await worker.process(row)
            except UnluckyError:
                claim.raised(row)
                raise
            claim.done(row)
        if batch.num_rows and worker.fate.toss():
            await self.checkpoints.update_checkpoint(batch)


class Processing(RecordedProcessor):
    """Processes one partition, sequentially or with events finished separately."""

    async def process_events(self, events: list[EventData]) -> None:
        worker, claim = self._worker, self._claim
        for event in events:
            claim.begun(event)
            if worker.orders.is_apart and worker.fate.toss():
                await self._tasks.start(self._finish_apart, self.checkpoints.track(event), event)
                continue
            try:
                await worker.process(event)
            except UnluckyError:
                claim.raised(event)
                raise
            claim.done(event)

    async def _finish_apart(self, apart: Any, event: EventData) -> None:
        try:
            await self._worker.process(event)
        except UnluckyError:
            self._claim.failed(event)
            apart.failed()
        else:
            self._claim.done(event)
            apart.done()
