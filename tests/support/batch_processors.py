"""Processors of Arrow batches of either variant, on a hub of two partitions.

The fixtures are those of the tests of `process_batch`, which import them.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from azure.eventhub import EventHubConsumerClient
from azure.eventhub.aio import EventHubConsumerClient as AioEventHubConsumerClient

import eventhub_checkpoints as sync
from eventhub_checkpoints import aio, arrow, every
from eventhub_checkpoints.aio import arrow as aio_arrow
from eventhub_checkpoints.conformance.clients import Loop
from eventhub_checkpoints.localhub import LocalHub
from waiting import eventually

QUICK = {"load_balancing_interval": 0.2, "partition_ownership_expiration_interval": 60}
OFTEN = every(events=1)


class BadRowError(Exception):
    """What a handler raises."""


class Stage:
    """Processors of one variant on a hub, in a store.

    Attributes:
        handled: numbers of the rows that `process_batch` has returned for, by partition.
        calls: rows of each call.
        log: what else was called.
        errors: what `on_error` was called with.
        handle: what `process_batch` does with the processor and the batch.
    """

    def __init__(self, is_aio: bool, hub: LocalHub, loop: Loop) -> None:
        self.is_aio, self.hub, self.finished = is_aio, hub, loop.finished
        self.package: Any = aio if is_aio else sync
        self.arrow: Any = aio_arrow if is_aio else arrow
        self.official: Any = AioEventHubConsumerClient if is_aio else EventHubConsumerClient
        self.text = hub.connection_string("orders")
        self.scope = arrow.HubAddress.from_connection_string(self.text).scope()
        self.handled: dict[str, list[int]] = defaultdict(list)
        self.calls: list[int] = []
        self.log: list[tuple[Any, ...]] = []
        self.errors: list[tuple[str | None, Exception]] = []
        self.handle: Callable[[Any, Any], Any] = lambda processor, batch: None
        self.kept = self.package.MemoryCheckpointStore()
        self._running: list[Any] = []

    def client(self, **settings: Any) -> Any:
        return partial(
            self.arrow.BatchConsumerClient,
            self.text,
            "$Default",
            **{"max_wait": 0.0, **QUICK, **settings},
        )

    def store(self) -> Any:
        """Another store with the same rows."""
        return self.package.MemoryCheckpointStore(self.kept.rows)

    def processor_class(self) -> type:
        stage = self

        def work(one: Any, batch: Any) -> Any:
            result = stage.handle(one, batch)
            stage.calls.append(batch.num_rows)
            return result

        def done(one: Any, batch: Any) -> None:
            numbers = batch.column("sequenceNumber").to_pylist()
            stage.handled[one.context.partition_id] += numbers

        class Rows(sync.PartitionProcessor):
            def initialize(self) -> None:
                stage.log.append(("initialize", self.context.partition_id))

            def process_batch(self, batch: Any) -> None:
                work(self, batch)
                done(self, batch)

            def process_error(self, error: Exception) -> None:
                stage.log.append(("error", type(error)))

            def close(self, reason: Any) -> None:
                stage.log.append(("close", self.context.partition_id, reason.name))

        class AioRows(aio.PartitionProcessor):
            async def initialize(self) -> None:
                stage.log.append(("initialize", self.context.partition_id))

            async def process_batch(self, batch: Any) -> None:
                result = work(self, batch)
                if result is not None:
                    await result
                done(self, batch)

            async def process_error(self, error: Exception) -> None:
                stage.log.append(("error", type(error)))

            async def close(self, reason: Any) -> None:
                stage.log.append(("close", self.context.partition_id, reason.name))

        return AioRows if self.is_aio else Rows

    def make(self, *, client: Any = None, processor: Any = None, **options: Any) -> Any:
        used = {"policy": OFTEN, "on_error": lambda *args: self.errors.append(args), **options}
        return self.package.EventProcessor(
            client or self.client(),
            processor or self.processor_class(),
            **{"store": self.store(), **used},
        )

    def start(self, **options: Any) -> Any:
        processor = self.make(**options)
        self.finished(processor.start())
        self._running.append(processor)
        return processor

    def saved(self) -> dict[str, int]:
        rows = self.finished(self.kept.list_checkpoints(*self.scope))
        return {row["partition_id"]: row["sequence_number"] for row in rows}

    def owners(self) -> dict[str, str]:
        rows = self.finished(self.kept.list_ownership(*self.scope))
        return {row["partition_id"]: row["owner_id"] for row in rows}

    def publish(self, count: int, partition_id: str = "0", **more: Any) -> None:
        self.hub.publish("orders", partition_id, [b"event"] * count, **more)

    def stop(self) -> None:
        for processor in self._running:
            self.finished(processor.stop())

    def end_of(self, processor: Any) -> None:
        """Wait for a processor that ends by itself, and stop it, which raises what ended it."""
        self._running.remove(processor)
        eventually(lambda: not processor.healthy())
        self.finished(processor.stop())

    def of(self, kind: str) -> list[Any]:
        """Return the entries of the log of one kind, in order."""
        return [entry for entry in self.log if entry[0] == kind]


@pytest.fixture(scope="module")
def hub() -> Iterator[LocalHub]:
    with LocalHub({"orders": 2}) as running:
        yield running


ONLY_AIO = pytest.mark.parametrize("stage", ["aio"], indirect=True)


@pytest.fixture(params=["sync", "aio"])
def stage(request: pytest.FixtureRequest, hub: LocalHub, loop: Loop) -> Iterator[Stage]:
    hub.recreate("orders", 2)
    stage = Stage(request.param == "aio", hub, loop)
    try:
        yield stage
    finally:
        stage.stop()


def fails_for(*numbers: int) -> Callable[[Any, Any], None]:
    """A handler that cannot process these rows."""

    def handle(one: Any, batch: Any) -> None:
        if {*numbers} & {*batch.column("sequenceNumber").to_pylist()}:
            raise BadRowError

    return handle
