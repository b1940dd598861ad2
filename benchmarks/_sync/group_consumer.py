# Derived from _async/group_consumer.py by tools/unasync.py; edit that file.
"""Consumer of a group that consumes a hub's events in each of the ways, until its meter ends it."""

from collections import Counter
from functools import partial
from typing import Any

from azure.eventhub import EventHubConsumerClient

from benchmarks.consume_meter import (
    CONSUME,
    OFFICIAL,
    PROCESS_BATCH,
    PROCESSOR,
    READ,
    Meter,
    broken,
)
from eventhub_checkpoints import EventProcessor, PartitionProcessor, open_store
from eventhub_checkpoints._shared._sync.compat import sleep
from eventhub_checkpoints.arrow import (
    BatchConsumerClient,
    HubAddress,
    ReadSettings,
    consume_batches,
    read_batches,
)

FOREVER = 3600.0
INTERVAL, POLL_SECONDS = 1.0, 0.05


class GroupConsumer:
    """Consumer in one of the ways.

    Args:
        hub: its connection string.
        store_url: of its store.
        commits: whether the position is saved after each batch.
        meter: is told of each batch.
        start: `"earliest"` or `"latest"`.
        members: number of those among which the partitions are shared, by `consume_batches`.
        settings: of `consume_batches`.
    """

    def __init__(
        self,
        hub: str,
        store_url: str,
        commits: bool,
        meter: Meter,
        start: str,
        members: int,
        settings: dict[str, Any],
    ) -> None:
        self.hub, self.commits, self.meter = hub, commits, meter
        self.store: Any = open_store(store_url)
        self.start, self.members, self.settings = start, members, settings
        self.is_shared = False
        self.position = "-1" if start == "earliest" else "@latest"
        self.connect = partial(EventHubConsumerClient.from_connection_string, hub, "$Default")

    def consume(self, way: str) -> None:
        """Consume in a way."""
        ways = {
            OFFICIAL: self.by_client,
            PROCESSOR: partial(self.by_processor, self.connect),
            CONSUME: self.by_loop,
            PROCESS_BATCH: partial(
                self.by_processor, partial(BatchConsumerClient, self.hub, **self.settings)
            ),
            READ: self.by_read,
        }
        ways[way]()

    def by_client(self) -> None:
        """Have the official client call a handler."""
        client = self.connect(checkpoint_store=self.store)
        client.receive_batch(self.on_batch, on_error=self.on_error, starting_position=self.position)

    def on_batch(self, context: Any, events: Any) -> None:
        if self.commits:
            context.update_checkpoint(events[-1])
        self.meter.count(context.partition_id, events)

    def on_error(self, context: Any, error: BaseException) -> None:
        broken(context, error)

    def by_processor(self, connect: Any) -> None:
        """Have an `EventProcessor` do it."""
        consumer = self

        class OfEvents(PartitionProcessor):
            def process_events(self, events: Any) -> None:
                if consumer.commits:
                    self.checkpoints.update_checkpoint(events[-1])
                consumer.meter.count(self.context.partition_id, events)

        class OfBatches:
            def __init__(self, context: Any, checkpoints: Any) -> None:
                self.context, self.checkpoints = context, checkpoints

            def process_batch(self, batch: Any) -> None:
                if consumer.commits:
                    self.checkpoints.update_checkpoint(batch)
                consumer.meter.count(self.context.partition_id, batch)

        kind: Any = OfEvents if connect is self.connect else OfBatches
        options: dict[str, Any] = {"policy": None, "save": self.commits, "on_error": broken}
        if self.start == "latest":
            options["starting_position"] = self.position
        with EventProcessor(connect, kind, store=self.store, **options):
            sleep(FOREVER)

    def by_loop(self) -> None:
        """Consume in a loop over `consume_batches`."""
        options: dict[str, Any] = {"store": self.store, "start": self.start, **self.settings}
        if self.members > 1:
            # Nobody consumes before all have their share.
            options |= {"on_assigned": self.until_shared, "handover": False}
            options["load_balancing_interval"] = INTERVAL
        self.loop(consume_batches(self.hub, **options))

    def until_shared(self, _partition_id: str) -> None:
        """Wait until all members have as many partitions."""
        scope = HubAddress.from_connection_string(self.hub).scope()
        while not self.is_shared:
            rows = self.store.list_ownership(*scope)
            counts = Counter(row["owner_id"] for row in rows)
            self.is_shared = len(counts) == self.members and len({*counts.values()}) == 1
            sleep(POLL_SECONDS)

    def by_read(self) -> None:
        """Read up to the end that the hub has, in the same loop."""
        store = self.store if self.commits else None
        settings = ReadSettings(rows_per_batch=self.settings["max_rows"])
        self.loop(read_batches(self.hub, store=store, settings=settings))

    def loop(self, batches: Any) -> None:
        """Consume batches."""
        with batches:
            for batch in batches:
                if self.commits:
                    batches.commit()
                self.meter.count(batch["partition"][0].as_py(), batch)
