"""A synchronous client may deliver events of a partition again while it is still closing it."""

import threading
from typing import Any

from azure.eventhub import CloseReason, EventData, EventHubConsumerClient, PartitionContext

from eventhub_checkpoints import EventProcessor, MemoryCheckpointStore, PartitionProcessor
from waiting import LIMIT


def test_a_partition_that_is_opened_while_it_is_being_closed_is_open_afterwards() -> None:
    is_closing, may_close = threading.Event(), threading.Event()
    batches: list[int] = []

    class Slow(PartitionProcessor):
        def process_events(self, events: list[EventData]) -> None:
            batches.append(len(events))

        def close(self, reason: CloseReason) -> None:
            is_closing.set()
            assert may_close.wait(LIMIT)

    def make(checkpoint_store: Any) -> EventHubConsumerClient:
        raise AssertionError("the test calls the callbacks itself")

    with MemoryCheckpointStore() as store:
        callbacks = EventProcessor(make, Slow, store=store, save=False)._callbacks
        callbacks.is_ready = True
        context = PartitionContext("ns.servicebus.windows.net", "hub", "$Default", "0", store)
        callbacks.on_initialize(context)
        closing = threading.Thread(
            target=callbacks.on_close, args=(context, CloseReason.OWNERSHIP_LOST)
        )
        closing.start()
        assert is_closing.wait(LIMIT)
        assert callbacks.open_partitions == {"0"}, "it is not closed yet"
        callbacks.on_events(context, [])
        may_close.set()
        closing.join(LIMIT)
        assert (batches, callbacks.open_partitions) == ([0], {"0"})
        callbacks.on_close(context, CloseReason.OWNERSHIP_LOST)
        assert callbacks.open_partitions == set()
        callbacks.stop_watching()
        callbacks.sessions.close()
