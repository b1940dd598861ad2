"""Asynchronous source of batches: waits for the reading threads without blocking the loop."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any, Generic, TypeVar

import pyarrow as pa

from eventhub_checkpoints.receive.arrow.plan import CLOSE_TIMEOUT, ReadRequest
from eventhub_checkpoints.receive.batches import ParallelReader
from eventhub_checkpoints.receive.ranges import OffsetRange

T = TypeVar("T")

IS_ASYNC = True


class ArrowExport:
    """Nothing: Arrow's own readers are synchronous, so `to_reader` exists only there."""

    __slots__ = ()


class Source:
    """Ranges read concurrently, for the tasks of one loop."""

    def __init__(self, request: ReadRequest, ranges: Sequence[OffsetRange]) -> None:
        news = self._news = asyncio.Event()
        self._is_closed = False
        at_once, loop = request.partitions_at_once, asyncio.get_running_loop()

        def notify() -> None:
            # A closed loop has no waiting tasks.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(news.set)

        self._threads = ParallelReader(request.address, ranges, request.settings, at_once, notify)

    async def next(self) -> pa.RecordBatch | None:
        """Return the next batch of any range; cancelling a waiting task loses no batch."""
        while not (self._threads.is_ready or self._is_closed):
            self._news.clear()
            # A batch that came before `clear` is there; one that comes after it sets the event.
            if not self._threads.is_ready:
                await self._news.wait()
        return None if self._is_closed else self._threads.next()

    def abandon(self) -> None:
        """Request all threads to end soon; may be called from any thread."""
        self._threads.stop()

    async def close(self) -> None:
        """Stop all threads and wait for them; a task that waits for a batch gets None."""
        self._is_closed = True
        self._news.set()
        self._threads.stop()
        await call(self._threads.join, CLOSE_TIMEOUT)


class Once(Generic[T]):
    """Work done once for all tasks that wait for it.

    Cancelling a task ends only its own wait: the work goes on, and the next task that waits gets
    its result. Failed work is started again.
    """

    def __init__(self) -> None:
        self._work: asyncio.Task[T] | None = None

    async def result(self, begin: Callable[[], Coroutine[Any, Any, T]]) -> T | None:
        """Return the result of the work, started if necessary; None if the work was cancelled."""
        if self._work is None:
            self._work = asyncio.create_task(begin())
        work = self._work
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if work.cancelled() and not (task and task.cancelling()):
                return None
            raise
        finally:
            if work is self._work and work.done() and (work.cancelled() or work.exception()):
                self._work = None

    async def end(self) -> None:
        """Cancel the work if it is running, and wait until it has ended."""
        if self._work is not None and not self._work.done():
            self._work.cancel()
            await asyncio.wait([self._work])


async def call(function: Callable[..., T], *args: object) -> T:
    """Call the function in a thread that delays neither cancellation nor the program's exit.

    `asyncio.to_thread` would delay the exit: the loop waits for its threads when it ends.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: Exception | None) -> None:
        if future.done():  # cancelled
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]

    def work() -> None:
        result, failure = None, None
        try:
            result = function(*args)
        except Exception as error:
            failure = error
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(settle, result, failure)

    threading.Thread(target=work, name="read-batches", daemon=True).start()
    return await future
