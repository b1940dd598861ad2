# Derived from _async/member.py by tools/unasync.py; edit that file.
"""Consumer that counts what it processes."""

from collections.abc import Callable
from functools import partial
from typing import Any

from azure.eventhub import CheckpointStore, EventData, EventHubConsumerClient, PartitionContext

from eventhub_checkpoints import (
    Checkpointer,
    CoalescingCheckpointStore,
    EventProcessor,
    HandoverStore,
    PartitionProcessor,
)
from handover_table import POLICY

Count = Callable[[str, str, int | None], None]


class Member:
    """Consumer of a group.

    Args:
        name: passed to `count`.
        way: one of `WAYS`.
        store: the store; it is not closed.
        count: called with the name, the partition and the sequence number of each event, when it is
            processed.
        hands_over: whether partitions are handed over.
        arguments: of the client, without its store.
    """

    def __init__(
        self,
        name: str,
        way: str,
        store: CheckpointStore,
        count: Count,
        hands_over: bool,
        arguments: dict[str, Any],
    ) -> None:
        self._count = partial(count, name)
        make_client = partial(EventHubConsumerClient.from_connection_string, **arguments)
        self.processor: EventProcessor | None = None
        if way == "processor":
            make = partial(Counting, self._count)
            self.processor = EventProcessor(
                make_client, make, store=store, policy=POLICY, handover=hands_over
            )
            return
        self._layer: Any = None
        if way == "coalescing":
            self._layer = store = CoalescingCheckpointStore(store, POLICY)
        if hands_over:
            expires_after = arguments["partition_ownership_expiration_interval"]
            store = HandoverStore(store, expires_after=expires_after)
        if way == "checkpointer":
            self._layer = Checkpointer(store, POLICY)
        self.client = make_client(checkpoint_store=store)
        self._on_event: Any = self._tracked if way == "checkpointer" else self._updated
        self._handlers = self._layer.handlers if way == "checkpointer" else {}

    def _tracked(self, context: PartitionContext, event: EventData) -> None:
        with self._layer.track(context, event):
            self._count(context.partition_id, event.sequence_number)

    def _updated(self, context: PartitionContext, event: EventData) -> None:
        self._count(context.partition_id, event.sequence_number)
        context.update_checkpoint(event)

    def receive(self) -> None:
        """Receive until `stop` is called."""
        if self.processor is not None:
            self.processor.start()
            self.processor.wait()
        else:
            self.client.receive(self._on_event, starting_position="-1", **self._handlers)

    def stop(self) -> None:
        """Save, and release all partitions."""
        if self.processor is not None:
            self.processor.stop()
            return
        self.client.close()
        if self._layer is not None:
            self._layer.close()


class Counting(PartitionProcessor):
    """Counts the events of a partition."""

    def __init__(
        self, count: Callable[[str, int | None], None], context: Any, checkpoints: Any
    ) -> None:
        super().__init__(context, checkpoints)
        self._counted = count

    def process_events(self, events: list[EventData]) -> None:
        for event in events:
            self._counted(self.context.partition_id, event.sequence_number)
