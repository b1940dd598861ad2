"""Consumer that processes a hub's events in each of the ways, with the SDK's client."""

from functools import partial
from typing import Any

from azure.eventhub.aio import EventHubConsumerClient

from benchmarks.processing_meter import (
    BY_BATCH,
    BY_OFFICIAL,
    COALESCING,
    FROM_THE_FIRST,
    HANDLERS,
    PROCESSOR,
    TRACKED,
    Meter,
    broken,
    scope_of,
)
from eventhub_checkpoints._shared._async.compat import sleep
from eventhub_checkpoints.aio import (
    Checkpointer,
    CoalescingCheckpointStore,
    EventProcessor,
    PartitionProcessor,
    open_store,
)
from eventhub_checkpoints.stores.azure_storage.account import EMULATOR_KEY

POLL_SECONDS = 0.05


class Consumer:
    """Consumer that ends its process when it has consumed all.

    Args:
        hub: its connection string.
        container: its URL.
        way: one of `HANDLERS`, or `PROCESSOR`.
        meter: counts every event.
        official: class of the official Blob store.
    """

    def __init__(self, hub: str, container: str, way: str, meter: Meter, official: Any) -> None:
        self.way = way
        self.meter = meter
        self.connect = partial(EventHubConsumerClient.from_connection_string, hub, "$Default")
        self.store: Any = open_store(container)
        if way in BY_OFFICIAL:
            self.store = official(*container.rsplit("/", 1), credential=EMULATOR_KEY)
        meter.count_writes(self.store)

    async def consume(self) -> None:
        """Consume in the way that was chosen."""
        if self.way == PROCESSOR:
            await self.process()
        is_coalescing = self.way == COALESCING
        layer = (CoalescingCheckpointStore if is_coalescing else Checkpointer)(self.store)
        self.layer: Any = layer
        client = self.connect(checkpoint_store=layer if is_coalescing else self.store)
        told = {"on_error": self.on_error, **FROM_THE_FIRST}
        if self.way == TRACKED:
            told |= layer.handlers
        receive = client.receive_batch if self.way in BY_BATCH else client.receive
        await receive(getattr(self, HANDLERS[self.way]), **told)

    async def on_error(self, context: Any, error: BaseException) -> None:
        broken(context, error)

    async def plain(self, context: Any, event: Any) -> None:
        if self.meter.count():
            await self.finish(context)

    async def updated(self, context: Any, event: Any) -> None:
        await context.update_checkpoint(event)
        if self.meter.count():
            await self.finish(context)

    async def tracked(self, context: Any, event: Any) -> None:
        async with self.layer.track(context, event):
            pass
        if self.meter.count():
            await self.finish(context)

    async def plain_batch(self, context: Any, events: Any) -> None:
        if self.meter.count(len(events)):
            await self.finish(context)

    async def updated_batch(self, context: Any, events: Any) -> None:
        await context.update_checkpoint(events[-1])
        if self.meter.count(len(events)):
            await self.finish(context)

    async def finish(self, context: Any) -> None:
        """Save what is not saved yet, and end."""
        await self.layer.flush()
        self.meter.stop()
        await self.end(context)

    async def process(self) -> None:
        """Have an `EventProcessor` do it; what it saves as it stops is not timed."""
        meter: Meter = self.meter
        seen: list[Any] = []

        class Counting(PartitionProcessor):
            async def process_events(self, events: Any) -> None:
                if meter.count(len(events)):
                    meter.stop()
                    seen.append(self.context)

        async with EventProcessor(self.connect, Counting, store=self.store, on_error=broken):
            while not seen:
                await sleep(POLL_SECONDS)
        await self.end(*seen)

    async def end(self, context: Any) -> None:
        """End the process, and see that the store has what it must."""
        self.meter.end(await self.store.list_checkpoints(*scope_of(context)))
