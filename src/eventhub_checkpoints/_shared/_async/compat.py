"""Primitives that differ between sync and async: waiting, and running calls in parallel."""

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator, Sequence
from contextlib import asynccontextmanager, suppress
from contextvars import Context
from typing import Any, Generic, ParamSpec, TypeVar

from eventhub_checkpoints._shared.deadline import (
    NO_TIME,
    bounded_context,
    deadline,
    seconds_left,
)
from eventhub_checkpoints._shared.workers import workers

Lock = asyncio.Lock
Condition = asyncio.Condition
sleep = asyncio.sleep
in_thread = asyncio.to_thread

Item = TypeVar("Item")
Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")


class InFlight:
    """Counts the calls in flight, each a `with` block, in one event loop."""

    def __init__(self) -> None:
        self.count = 0
        self._none_left = asyncio.Event()

    def __enter__(self) -> None:
        self.count += 1
        self._none_left.clear()

    def __exit__(self, *_: object) -> None:
        self.count -= 1
        if not self.count:
            self._none_left.set()

    async def wait(self, seconds: float) -> None:
        """Wait until no call is in flight, or the time is over."""
        if self.count:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._none_left.wait()


def loop_key() -> object:
    """Return the process and event loop to which connections and locks belong."""
    return workers.process, asyncio.get_running_loop()


class InContext(Generic[Result]):
    """Awaits an object in the same task, but runs each of its steps in another context."""

    def __init__(self, context: Context, awaitable: Awaitable[Result]) -> None:
        self._context = context
        self._awaitable = awaitable

    def __await__(self) -> Generator[Any, Any, Result]:
        steps: Any = self._awaitable.__await__()
        step, argument = steps.send, None
        while True:
            try:
                awaited = self._context.run(step, argument)
            except StopIteration as end:
                result: Result = end.value
                return result
            try:
                step, argument = steps.send, (yield awaited)
            except BaseException as error:
                step, argument = steps.throw, error


def bounded(
    seconds: float,
    function: Callable[Arguments, Awaitable[Result]],
    *args: Arguments.args,
    **kwargs: Arguments.kwargs,
) -> Awaitable[Result]:
    """Call the function with a deadline; an earlier outer deadline stays in force."""
    context = bounded_context(seconds)
    return InContext(context, context.run(function, *args, **kwargs))


# An event loop turns Ctrl-C into a cancellation, which is raised only at an `await`.
uninterrupted = bounded


def caller() -> object:
    """Return the calling task, for `ended`."""
    return asyncio.current_task()


async def ended(task: object, seconds: float) -> None:
    """Wait until a task has ended, unless it is the calling task."""
    if not isinstance(task, asyncio.Task) or task is asyncio.current_task():
        return
    if task.get_loop() is asyncio.get_running_loop():
        await asyncio.wait([task], timeout=max(seconds, 0))


def is_over(task: object) -> bool:
    """Return whether a task, as returned by `caller`, has ended."""
    return isinstance(task, asyncio.Task) and task.done()


@asynccontextmanager
async def attempt(limit: float) -> AsyncIterator[None]:
    """Limit the block to `limit` seconds and to what the call has left; cancel it after that.

    Only for code inside of `bounded`; see `deadline`.

    Raises:
        TimeoutError: the block did not end in time, or no time was left to start it.
    """
    limit = min(limit, seconds_left())
    with deadline(limit):
        async with asyncio.timeout(limit):
            yield


async def within(
    seconds: float,
    function: Callable[Arguments, Awaitable[Result]],
    *args: Arguments.args,
    **kwargs: Arguments.kwargs,
) -> Result:
    """Call the function with a deadline, and cancel it when the deadline passes.

    Raises:
        TimeoutError: the function did not end in time, or no time was left to start it.
    """
    seconds = min(seconds, seconds_left())
    if seconds <= 0:
        raise TimeoutError(NO_TIME)
    async with asyncio.timeout(seconds):
        return await bounded(seconds, function, *args, **kwargs)


async def completed(
    function: Callable[Arguments, Coroutine[Any, Any, Result]],
    *args: Arguments.args,
    **kwargs: Arguments.kwargs,
) -> Result:
    """Call the function and let it complete even if the caller is cancelled."""
    task = asyncio.get_running_loop().create_task(function(*args, **kwargs))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


async def for_each(
    function: Callable[[Item], Awaitable[Result]], items: Sequence[Item], limit: int
) -> list[Result]:
    """Call the function for each item, at most `limit` at a time; return results in order."""
    gate = asyncio.Semaphore(limit)

    async def call(item: Item) -> Result:
        async with gate:
            return await function(item)

    if len(items) <= 1:
        return [await function(item) for item in items]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(call(item)) for item in items]
    return [task.result() for task in tasks]


@asynccontextmanager
async def holding(lock: Lock, seconds: float) -> AsyncIterator[None]:
    """Hold the lock.

    Raises:
        TimeoutError: the lock was not released in time.
    """
    try:
        async with asyncio.timeout(seconds):
            await lock.acquire()
    except TimeoutError:
        raise TimeoutError("the previous call has not ended in time") from None
    try:
        yield
    finally:
        lock.release()


async def holds_within(changed: Condition, predicate: Callable[[], object], seconds: float) -> bool:
    """Wait until a predicate holds, at most `seconds`; return whether it does.

    The caller holds the condition.
    """
    limit = None if seconds == math.inf else max(seconds, 0)
    try:
        async with asyncio.timeout(limit):
            await changed.wait_for(predicate)
    except TimeoutError:
        pass
    return bool(predicate())
