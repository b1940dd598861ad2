"""What differs between the colours: waiting, and doing several things at once."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import ParamSpec, TypeVar

from eventhub_checkpoints._deadline import deadline, seconds_left

Lock = asyncio.Lock
sleep = asyncio.sleep

Item = TypeVar("Item")
Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")


def place() -> object:
    """Where this runs: connections and locks belong to one process and one event loop."""
    return os.getpid(), asyncio.get_running_loop()


async def within(
    seconds: float,
    function: Callable[Arguments, Awaitable[Result]],
    *args: Arguments.args,
    **kwargs: Arguments.kwargs,
) -> Result:
    """Call the function; cut it off after so many seconds.

    Raises:
        TimeoutError: it did not end in time, or no time was left to begin.
    """
    with deadline(seconds):
        if seconds_left() <= 0:
            raise TimeoutError("no time was left for this request")
        async with asyncio.timeout(seconds_left()):
            return await function(*args, **kwargs)


async def for_each(
    function: Callable[[Item], Awaitable[Result]], items: Sequence[Item], limit: int
) -> list[Result]:
    """Call the function for each item, at most `limit` at a time; results in the items' order."""
    gate = asyncio.Semaphore(limit)

    async def one(item: Item) -> Result:
        async with gate:
            return await function(item)

    if len(items) <= 1:
        return [await function(item) for item in items]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(item)) for item in items]
    return [task.result() for task in tasks]


@asynccontextmanager
async def holding(lock: Lock, seconds: float) -> AsyncIterator[None]:
    """Hold the lock.

    Raises:
        TimeoutError: it was not free in time.
    """
    try:
        async with asyncio.timeout(seconds):
            await lock.acquire()
    except TimeoutError:
        raise TimeoutError("what was under way before it did not end in time") from None
    try:
        yield
    finally:
        lock.release()
