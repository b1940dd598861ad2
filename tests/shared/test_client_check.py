"""Objects of both variants: what is refused with a way out, and what goes on to work."""

import asyncio
import inspect
from collections.abc import Callable
from contextlib import AsyncExitStack, ExitStack
from typing import Any

import pytest

from eventhub_checkpoints import (
    Checkpointer,
    CoalescingCheckpointStore,
    ConfigurationError,
    EventProcessor,
    MemoryCheckpointStore,
    PartitionProcessor,
    aio,
    arrow,
)
from eventhub_checkpoints.aio import arrow as aio_arrow
from eventhub_checkpoints.aio.blob import BlobCheckpointStore as AioBlobCheckpointStore
from eventhub_checkpoints.aio.cassandra import (
    CassandraCheckpointStore as AioCassandraCheckpointStore,
)
from eventhub_checkpoints.aio.redis import RedisCheckpointStore as AioRedisCheckpointStore
from eventhub_checkpoints.aio.sql import SqlCheckpointStore as AioSqlCheckpointStore
from eventhub_checkpoints.aio.table import TableCheckpointStore as AioTableCheckpointStore
from eventhub_checkpoints.blob import BlobCheckpointStore
from eventhub_checkpoints.cassandra import CassandraCheckpointStore
from eventhub_checkpoints.processing._async.tracked_event import (
    TrackedBatchEvent as AioTrackedBatchEvent,
)
from eventhub_checkpoints.processing._async.tracked_event import TrackedEvent as AioTrackedEvent
from eventhub_checkpoints.processing._sync.tracked_event import TrackedBatchEvent, TrackedEvent
from eventhub_checkpoints.redis import RedisCheckpointStore
from eventhub_checkpoints.sql import SqlCheckpointStore
from eventhub_checkpoints.table import TableCheckpointStore

HUB = "Endpoint=sb://a.example.net/;SharedAccessKeyName=n;SharedAccessKey=a2V5;EntityPath=orders"
BLOB = "http://127.0.0.1:1/devstoreaccount1/checkpoints"
TABLE = "table+http://127.0.0.1:1/devstoreaccount1/positions"
SCOPE = ("fully_qualified_namespace", "eventhub_name", "consumer_group")
NAMES = ("a.example.net", "orders", "$Default")


def never_called(**options: object) -> Any:
    raise AssertionError("a client was made")


SYNC: dict[str, Callable[[], Any]] = {
    "from eventhub_checkpoints.aio import MemoryCheckpointStore": MemoryCheckpointStore,
    "from eventhub_checkpoints.aio.sql import SqlCheckpointStore": lambda: SqlCheckpointStore(
        "sqlite:///x.db"
    ),
    "from eventhub_checkpoints.aio.redis import RedisCheckpointStore": lambda: (
        RedisCheckpointStore.from_url("redis://127.0.0.1:1")
    ),
    "from eventhub_checkpoints.aio.cassandra import CassandraCheckpointStore": lambda: (
        CassandraCheckpointStore(["127.0.0.1"])
    ),
    "from eventhub_checkpoints.aio.blob import BlobCheckpointStore": lambda: (
        BlobCheckpointStore.from_url(BLOB)
    ),
    "from eventhub_checkpoints.aio.table import TableCheckpointStore": lambda: (
        TableCheckpointStore.from_url(TABLE)
    ),
    "from eventhub_checkpoints.aio import CoalescingCheckpointStore": lambda: (
        CoalescingCheckpointStore(MemoryCheckpointStore())
    ),
    "from eventhub_checkpoints.aio import Checkpointer": lambda: Checkpointer(
        MemoryCheckpointStore()
    ),
    "from eventhub_checkpoints.aio import EventProcessor": lambda: EventProcessor(
        never_called, PartitionProcessor, store=MemoryCheckpointStore()
    ),
    "from eventhub_checkpoints.aio.arrow import read_batches": lambda: arrow.read_batches(HUB),
}
AIO: dict[str, Callable[[], Any]] = {
    "from eventhub_checkpoints import MemoryCheckpointStore": aio.MemoryCheckpointStore,
    "from eventhub_checkpoints.sql import SqlCheckpointStore": lambda: AioSqlCheckpointStore(
        "sqlite:///x.db"
    ),
    "from eventhub_checkpoints.redis import RedisCheckpointStore": lambda: (
        AioRedisCheckpointStore.from_url("redis://127.0.0.1:1")
    ),
    "from eventhub_checkpoints.cassandra import CassandraCheckpointStore": lambda: (
        AioCassandraCheckpointStore(["127.0.0.1"])
    ),
    "from eventhub_checkpoints.blob import BlobCheckpointStore": lambda: (
        AioBlobCheckpointStore.from_url(BLOB)
    ),
    "from eventhub_checkpoints.table import TableCheckpointStore": lambda: (
        AioTableCheckpointStore.from_url(TABLE)
    ),
    "from eventhub_checkpoints import CoalescingCheckpointStore": lambda: (
        aio.CoalescingCheckpointStore(aio.MemoryCheckpointStore())
    ),
    "from eventhub_checkpoints import Checkpointer": lambda: aio.Checkpointer(
        aio.MemoryCheckpointStore()
    ),
    "from eventhub_checkpoints import EventProcessor": lambda: aio.EventProcessor(
        never_called, aio.PartitionProcessor, store=aio.MemoryCheckpointStore()
    ),
    "from eventhub_checkpoints.arrow import read_batches": lambda: aio_arrow.read_batches(HUB),
}


def expected(kind: str, statement: str, line: str, value: object) -> str:
    for_whom = "for asyncio" if kind == "synchronous" else "without asyncio"
    return f"{type(value).__name__} is {kind}: use `{statement}`, or {for_whom} `{line}`"


@pytest.mark.parametrize("line", SYNC)
def test_async_with_on_a_sync_object_names_the_way_out(line: str) -> None:
    async def inside(value: Any) -> None:
        async with value:
            raise AssertionError("it was entered")

    value = SYNC[line]()
    with pytest.raises(ConfigurationError) as caught:
        asyncio.run(inside(value))
    assert str(caught.value) == expected("synchronous", "with", line, value)
    value.stop() if isinstance(value, EventProcessor) else value.close()


@pytest.mark.parametrize("line", AIO)
def test_with_on_an_async_object_names_the_way_out(line: str) -> None:
    async def inside() -> None:
        value = AIO[line]()
        with pytest.raises(ConfigurationError) as caught, value:
            raise AssertionError("it was entered")
        assert str(caught.value) == expected("asynchronous", "async with", line, value)
        await (value.stop() if isinstance(value, aio.EventProcessor) else value.close())

    asyncio.run(inside())


@pytest.mark.parametrize(
    ("kind", "line"),
    [
        (TrackedEvent, "from eventhub_checkpoints.aio import Checkpointer"),
        (TrackedBatchEvent, "from eventhub_checkpoints.aio import EventProcessor"),
    ],
)
def test_async_with_on_an_event_of_a_sync_object_names_the_way_out(kind: Any, line: str) -> None:
    value = object.__new__(kind)

    async def inside() -> None:
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(value)

    with pytest.raises(ConfigurationError) as caught:
        asyncio.run(inside())
    assert str(caught.value) == expected("synchronous", "with", line, value)


@pytest.mark.parametrize(
    ("kind", "line"),
    [
        (AioTrackedEvent, "from eventhub_checkpoints import Checkpointer"),
        (AioTrackedBatchEvent, "from eventhub_checkpoints import EventProcessor"),
    ],
)
def test_with_on_an_event_of_an_async_object_names_the_way_out(kind: Any, line: str) -> None:
    value = object.__new__(kind)
    with pytest.raises(ConfigurationError) as caught, ExitStack() as stack:
        stack.enter_context(value)
    assert str(caught.value) == expected("asynchronous", "async with", line, value)


def test_async_for_over_sync_batches_names_the_way_out() -> None:
    batches: Any = arrow.read_batches(HUB)

    async def inside() -> None:
        async for _ in batches:
            raise AssertionError("there was a batch")

    with pytest.raises(ConfigurationError) as caught:
        asyncio.run(inside())
    line = "from eventhub_checkpoints.aio.arrow import read_batches"
    assert str(caught.value) == expected("synchronous", "for", line, batches)


def test_for_over_async_batches_names_the_way_out() -> None:
    async def inside() -> None:
        batches: Any = aio_arrow.read_batches(HUB)
        with pytest.raises(ConfigurationError) as caught:
            list(batches)
        line = "from eventhub_checkpoints.arrow import read_batches"
        assert str(caught.value) == expected("asynchronous", "async for", line, batches)

    asyncio.run(inside())


def test_a_sync_store_works_where_an_event_loop_runs() -> None:
    async def a_cell_of_a_notebook() -> list[Any]:
        with MemoryCheckpointStore() as store:
            store.claim_ownership(
                [{**dict(zip(SCOPE, NAMES, strict=True)), "partition_id": "0", "owner_id": "me"}]
            )
            return [
                *store.list_ownership(*NAMES),
                *await asyncio.to_thread(store.list_checkpoints, *NAMES),
            ]

    [row] = asyncio.run(a_cell_of_a_notebook())
    assert row["owner_id"] == "me"


@pytest.mark.parametrize("name", ["list_ownership", "list_checkpoints"])
@pytest.mark.parametrize("wrapped", [False, True])
def test_a_method_of_an_async_store_is_a_coroutine_function(name: str, wrapped: bool) -> None:
    store: Any = aio.MemoryCheckpointStore()
    if wrapped:
        store = aio.CoalescingCheckpointStore(store)
    method = getattr(store, name)
    assert inspect.iscoroutinefunction(method)
    assert inspect.ismethod(method)
    assert asyncio.run(method(*NAMES)) == []
    assert inspect.isfunction(getattr(type(store), name))
    assert [*inspect.signature(method).parameters][: len(SCOPE)] == [*SCOPE]
    assert method.__doc__
