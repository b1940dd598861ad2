"""A hub as Arrow batches, asynchronously; see `eventhub_checkpoints.arrow`.

    async with read_batches(CONNECTION_STRING, store="sqlite:///checkpoints.db") as batches:
        async for batch in batches:
            await work(batch)
            await batches.commit()

Receiving and decoding happen in threads, as many as `partitions_at_once`, and never block the
event loop. A task that waits for a batch can be cancelled at any time: no batch is lost by it.
Arrow's own readers are synchronous, so `to_reader` is only there; `to_table` is in both.
"""

import asyncio
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, Self, TypeVar

from azure.eventhub.aio import CheckpointStore

from eventhub_checkpoints._arrow_reading import (
    DEFAULT_SETTINGS,
    NO_STORE,
    Positions,
    Reading,
    checked_store,
    checkpoint,
    stale_count,
)
from eventhub_checkpoints.aio.registry import open_store
from eventhub_checkpoints.errors import (
    ConfigurationError,
    MissingDriverError,
    StaleCheckpointError,
)
from eventhub_checkpoints.receive.address import Address
from eventhub_checkpoints.receive.amqp.address import HubAddress
from eventhub_checkpoints.receive.position import EventPosition
from eventhub_checkpoints.receive.ranges import ReadSettings
from eventhub_checkpoints.receive.wanted import Where
from eventhub_checkpoints.records import Scope

try:
    import pyarrow as pa

    from eventhub_checkpoints.receive.columns import SCHEMA
    from eventhub_checkpoints.receive.side_by_side import SideBySide
except ImportError as error:
    raise MissingDriverError.of_extra("receiving Arrow batches", "arrow") from error

__all__ = ["Batches", "EventPosition", "HubAddress", "ReadSettings", "Scope", "read_batches"]

CLOSE_TIMEOUT = 5.0

T = TypeVar("T")


def read_batches(
    hub: str | Address,
    scope: Scope | None = None,
    store: CheckpointStore | str | Mapping[str, Any] | None = None,
    *,
    partition_ids: Iterable[str | int] | None = None,
    start: Where | Mapping[str, Where] = "earliest",
    until: Where | Mapping[str, Where] = "latest",
    partitions_at_once: int = 4,
    settings: ReadSettings = DEFAULT_SETTINGS,
) -> "Batches":
    """Read a hub from where the checkpoints say, or `start`, until where it ends now.

    All is as with `eventhub_checkpoints.arrow.read_batches`; a store is of the asynchronous kind.
    """
    reading = Reading.checked(hub, scope, partition_ids, start, until, partitions_at_once, settings)
    if store is None:
        return Batches(reading, None, owns_store=False)
    if isinstance(store, str | Mapping):
        return Batches(reading, open_store(store), owns_store=True)
    return Batches(reading, checked_store(store, is_async=True), owns_store=False)


class Batches:
    """The batches of a hub, each of one partition; those of a partition come in its order.

    Attributes:
        schema: the nine columns.
    """

    schema: pa.Schema = SCHEMA

    def __init__(self, reading: Reading, store: Any, *, owns_store: bool) -> None:
        self._reading = reading
        self._store = store
        self._owns_store = owns_store
        self._positions = Positions()
        self._opening = asyncio.Lock()
        self._news = asyncio.Event()
        self._source: SideBySide | None = None
        self._is_closed = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> pa.RecordBatch:
        """The next batch, of whichever partition comes first; raises as the other colour does."""
        source = await self._opened()
        while source and not (source.is_ready or self._is_closed):
            self._news.clear()
            # A batch that came before `clear` is there; one that comes after it sets the event.
            if not source.is_ready:
                await self._news.wait()
        batch = source.next() if source and not self._is_closed else None
        if batch is None:
            raise StopAsyncIteration
        self._positions.hand_out(batch)
        return batch

    async def commit(self) -> dict[str, int]:
        """Save, for each partition, the position of the last batch that was handed out.

        All is as in the other colour. Batches that are handed out while it waits for the store
        are not covered.
        """
        if self._store is None:
            raise ConfigurationError(NO_STORE)
        saved: dict[str, int] = {}
        refused: StaleCheckpointError | None = None
        for partition, place in self._positions.unsettled().items():
            before = stale_count(self._store)
            row = checkpoint(self._reading.scope, partition, place)
            try:
                await self._store.update_checkpoint(row)
            except StaleCheckpointError as error:
                refused = error
            else:
                if stale_count(self._store) == before:
                    saved[partition] = place.sequence_number
            self._positions.settled[partition] = place
        if refused:
            raise refused
        return saved

    async def to_table(self) -> pa.Table:
        """All batches that follow, at once in memory."""
        return pa.Table.from_batches([batch async for batch in self], SCHEMA)

    async def close(self) -> None:
        """Stop receiving, and close the store if it was opened here. Nothing is committed."""
        self._is_closed = True
        self._news.set()
        if self._source:
            self._source.stop()
            await in_daemon(self._source.join, CLOSE_TIMEOUT)
        if self._owns_store:
            await self._store.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _opened(self) -> SideBySide | None:
        async with self._opening:
            if self._source is None and not self._is_closed:
                self._source = await self._open()
                if self._is_closed:
                    # By somebody who did not wait for the hub's answers, and saw nothing to stop.
                    self._source.stop()
            return None if self._is_closed else self._source

    async def _open(self) -> SideBySide:
        reading = self._reading
        rows = await self._store.list_checkpoints(*reading.scope) if self._store is not None else []
        stored = {row["partition_id"]: row for row in rows}
        plan = await in_daemon(reading.wanted.plan, reading.address, stored, reading.settings)
        self._positions.handed_out.update(plan.passed)
        at_once = reading.partitions_at_once
        tell = telling(self._news)
        source = SideBySide(reading.address, plan.ranges, reading.settings, at_once, tell)
        # Whoever leaves a loop early and forgets to close leaves no thread behind.
        weakref.finalize(self, source.stop)
        return source


def telling(news: asyncio.Event) -> Callable[[], None]:
    """What sets the event of this loop from any thread."""
    loop = asyncio.get_running_loop()

    def tell() -> None:
        # A loop that is closed waits for nothing.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(news.set)

    return tell


async def in_daemon(function: Callable[..., T], *args: object) -> T:
    """Call the function in a thread that keeps neither a cancelled task nor the program's end.

    `asyncio.to_thread` would do the latter: the end of the loop waits for its threads.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: Exception | None) -> None:
        if answer.done():  # cancelled
            return
        if error is not None:
            answer.set_exception(error)
        else:
            answer.set_result(result)  # type: ignore[arg-type]

    def work() -> None:
        result, failure = None, None
        try:
            result = function(*args)
        except Exception as error:
            failure = error
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(settle, result, failure)

    threading.Thread(target=work, name="read-batches", daemon=True).start()
    return await answer
