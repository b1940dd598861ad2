"""Real consumers, sync and aio, on a local hub, most of them with stores on Azurite."""

import asyncio
import threading
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from typing import Any

import pytest
from azure.eventhub import EventHubConsumerClient
from azure.eventhub.aio import EventHubConsumerClient as AioEventHubConsumerClient
from azure.storage.blob import ContainerClient

from backends import Place
from eventhub_checkpoints.aio.blob import BlobCheckpointStore as AioBlobCheckpointStore
from eventhub_checkpoints.aio.memory import MemoryCheckpointStore as AioMemoryCheckpointStore
from eventhub_checkpoints.blob import BlobCheckpointStore
from eventhub_checkpoints.conformance.clients import Loop
from eventhub_checkpoints.localhub import LocalHub
from eventhub_checkpoints.memory import MemoryCheckpointStore
from prompt_client import prompt_client
from waiting import LIMIT

__all__ = ["prompt_client"]

INTERVAL, EXPIRY = 0.4, 60.0
"""Seconds between two rounds of load balancing, and until an ownership ends by itself."""
PARTITIONS = ["0", "1"]
"""Few, because a sync client needs most of a second to close each."""


class Consumer(ABC):
    """A running client, and what it was told.

    Attributes:
        events: sequence numbers of each partition, in the order of arrival.
        owned: partitions that were opened and not closed.
        closed: partitions that were closed, with the reason.
        errors: what `on_error` was given: the partition, or None, and the error.
        saves: whether an event is checkpointed.
    """

    def __init__(self, hub: LocalHub, store: Any, **settings: Any) -> None:
        self.store = store
        self.events: dict[str, list[int]] = defaultdict(list)
        self.owned: set[str] = set()
        self.closed: list[tuple[str, str]] = []
        self.errors: list[tuple[str | None, Exception]] = []
        self.saves: Callable[[Any], bool] = lambda event: False
        self._arguments = {
            "conn_str": hub.connection_string("orders"),
            "consumer_group": "$Default",
            "checkpoint_store": store,
            "load_balancing_interval": INTERVAL,
            "partition_ownership_expiration_interval": EXPIRY,
            "socket_timeout": 0.02,
            **settings,
        }
        self._partition_id = self._arguments.pop("partition_id", None)

    @property
    def total(self) -> int:
        """How many events have arrived."""
        return sum(len(numbers) for numbers in list(self.events.values()))

    def saw(self, kind: type[Exception]) -> bool:
        """Whether load balancing has reported such an error."""
        return any(where is None and isinstance(error, kind) for where, error in self.errors)

    def _initialize(self, context: Any) -> None:
        self.owned.add(context.partition_id)

    def _close(self, context: Any, reason: Any) -> None:
        self.owned.discard(context.partition_id)
        self.closed.append((context.partition_id, reason.name))

    def _error(self, context: Any, error: Exception) -> None:
        self.errors.append((context and context.partition_id, error))

    def _take(self, context: Any, event: Any) -> bool:
        self.events[context.partition_id].append(event.sequence_number)
        return self.saves(event)

    @abstractmethod
    def close(self) -> None:
        """Close client and store."""


class SyncConsumer(Consumer):
    def __init__(self, hub: LocalHub, store: Any, loop: Loop, **settings: Any) -> None:
        super().__init__(hub, store, **settings)
        self._client = EventHubConsumerClient.from_connection_string(**self._arguments)
        self._thread = threading.Thread(target=self._receive)
        self._thread.start()

    def _receive(self) -> None:
        self._client.receive_batch(
            self._batch,
            starting_position="-1",
            partition_id=self._partition_id,
            on_partition_initialize=self._initialize,
            on_partition_close=self._close,
            on_error=self._error,
        )

    def _batch(self, context: Any, events: list[Any]) -> None:
        for event in events:
            if self._take(context, event):
                context.update_checkpoint(event)

    def close(self) -> None:
        self._client.close()
        self._thread.join(LIMIT)
        assert not self._thread.is_alive()
        self.store.close()


class AioConsumer(Consumer):
    def __init__(self, hub: LocalHub, store: Any, loop: Loop, **settings: Any) -> None:
        super().__init__(hub, store, **settings)
        self._loop = loop
        loop.finished(self._start())

    async def _start(self) -> None:
        self._client = AioEventHubConsumerClient.from_connection_string(**self._arguments)
        self._task = asyncio.create_task(
            self._client.receive_batch(
                self._batch,
                starting_position="-1",
                partition_id=self._partition_id,
                on_partition_initialize=self._initialized,
                on_partition_close=self._closed,
                on_error=self._failed,
            )
        )

    async def _initialized(self, context: Any) -> None:
        self._initialize(context)

    async def _closed(self, context: Any, reason: Any) -> None:
        self._close(context, reason)

    async def _failed(self, context: Any, error: Exception) -> None:
        self._error(context, error)

    async def _batch(self, context: Any, events: list[Any]) -> None:
        for event in events:
            if self._take(context, event):
                await context.update_checkpoint(event)

    def close(self) -> None:
        self._loop.finished(self._end())

    async def _end(self) -> None:
        await self._client.close()
        self._task.cancel()  # or it would go on until its load balancing has slept
        with suppress(asyncio.CancelledError):
            await self._task
        await self.store.close()


class Stored:
    """What is in the container, read past every store."""

    def __init__(self, raw: ContainerClient) -> None:
        self.raw = raw

    def rows(self, kind: str) -> dict[str, Any]:
        """Blobs of a kind, by partition."""
        found = self.raw.list_blobs(include=["metadata"])
        return {b.name.rpartition("/")[2]: b for b in found if f"/{kind}/" in b.name}

    def owners(self) -> dict[str, str]:
        """Owner of each partition; `""` where it is released."""
        rows = self.rows("ownership").items()
        return {key: (blob.metadata or {}).get("ownerid") or "" for key, blob in rows}

    def checkpoints(self) -> dict[str, int]:
        """Sequence number of each partition."""
        rows = self.rows("checkpoint").items()
        return {key: int(blob.metadata["sequencenumber"]) for key, blob in rows}


class Site:
    """Where consumers of one variant run."""

    def __init__(self, variant: str, loop: Loop, hub: LocalHub, opened: ExitStack) -> None:
        self.is_aio = variant == "aio"
        self.loop = loop
        self.hub = hub
        self._opened = opened

    def store(self, container: Any, **settings: Any) -> Any:
        """A store of ours."""
        kind = AioBlobCheckpointStore if self.is_aio else BlobCheckpointStore
        return kind.from_connection_string(container.connection_string, container.name, **settings)

    def store_in_memory(self) -> Any:
        """A store of ours that needs no server."""
        return AioMemoryCheckpointStore() if self.is_aio else MemoryCheckpointStore()

    def open(self, place: Place) -> Any:
        """A store of ours on any backend."""
        return place.open("aio" if self.is_aio else "sync")

    def start(self, store: Any, **settings: Any) -> Consumer:
        """A consumer over a store; it is closed after the test, if the test does not."""
        kind = AioConsumer if self.is_aio else SyncConsumer
        consumer = kind(self.hub, store, self.loop, **settings)
        self._opened.callback(self.closed, consumer)
        return consumer

    def closed(self, consumer: Consumer) -> None:
        """Close a consumer, once."""
        if not getattr(consumer, "is_closed", False):
            consumer.is_closed = True  # type: ignore[attr-defined]
            consumer.close()

    def publish(self, count: int, partition_ids: list[str] | None = None) -> None:
        """So many events in each of these partitions, or in all."""
        for partition_id in partition_ids or self.hub.partition_ids("orders"):
            self.hub.publish("orders", partition_id, ["event"] * count)


@pytest.fixture
def hub() -> Iterator[LocalHub]:
    with LocalHub({"orders": len(PARTITIONS)}) as running:
        yield running


@pytest.fixture(params=["sync", "aio"])
def site(request: pytest.FixtureRequest, loop: Loop, hub: LocalHub) -> Iterator[Site]:
    with ExitStack() as opened:
        yield Site(request.param, loop, hub, opened)


@pytest.fixture
def stored(blob_container: Any) -> Iterator[Stored]:
    with blob_container.client() as client:
        yield Stored(client)
