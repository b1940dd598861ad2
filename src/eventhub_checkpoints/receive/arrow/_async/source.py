"""How this colour waits for the threads that read, and asks the hub: the loop is never blocked."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from eventhub_checkpoints.receive.arrow.plan import CLOSE_TIMEOUT, Reading
from eventhub_checkpoints.receive.parallel_reader import SideBySide
from eventhub_checkpoints.receive.ranges import OffsetRange

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")

IS_ASYNC = True


class Source:
    """Some ranges, read side by side, for the tasks of one loop."""

    def __init__(self, reading: Reading, ranges: Sequence[OffsetRange]) -> None:
        self._news = asyncio.Event()
        self._is_closed = False
        at_once, tell = reading.partitions_at_once, telling(self._news)
        self._threads = SideBySide(reading.address, ranges, reading.settings, at_once, tell)

    async def next(self) -> "pa.RecordBatch | None":
        """The next batch of any range; a task that waits can be cancelled, and none is lost."""
        while not (self._threads.is_ready or self._is_closed):
            self._news.clear()
            # A batch that came before `clear` is there; one that comes after it sets the event.
            if not self._threads.is_ready:
                await self._news.wait()
        return None if self._is_closed else self._threads.next()

    def abandon(self) -> None:
        """Have all threads end soon; from any thread."""
        self._threads.stop()

    async def close(self) -> None:
        """Have all threads end, and wait for it; a task that waits for a batch gets none."""
        self._is_closed = True
        self._news.set()
        self._threads.stop()
        await call(self._threads.join, CLOSE_TIMEOUT)


class Once(Generic[T]):
    """Work that is done once for all tasks that wait for it.

    A task that is cancelled ends only its own wait: the work goes on, and the next task that
    waits has its result. Work that failed is begun anew.
    """

    def __init__(self) -> None:
        self._work: asyncio.Task[T] | None = None

    async def result(self, begin: Callable[[], Coroutine[Any, Any, T]]) -> T | None:
        """The result of the work, which is begun where it has not been; None once it was ended."""
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
        """Cut the work off if it is under way, and wait until it has ended."""
        if self._work is not None and not self._work.done():
            self._work.cancel()
            await asyncio.wait([self._work])


def telling(news: asyncio.Event) -> Callable[[], None]:
    """What sets the event of this loop from any thread."""
    loop = asyncio.get_running_loop()

    def tell() -> None:
        # A loop that is closed waits for nothing.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(news.set)

    return tell


async def call(function: Callable[..., T], *args: object) -> T:
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
