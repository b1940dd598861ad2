"""Waiting for the Cassandra driver in an event loop."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from eventhub_checkpoints.stores.cassandra.driver import ResponseFuture, ResultSet, started

T = TypeVar("T")


async def answered(request: ResponseFuture) -> ResultSet:
    """Wait for the first page of the response, which arrives in the driver's own thread."""
    loop = asyncio.get_running_loop()
    arrival: asyncio.Future[Any] = loop.create_future()

    def settle(act: Callable[[Any], None], value: Any) -> None:
        if not arrival.done():
            act(value)

    def settle_later(act: Callable[[Any], None], value: Any) -> None:
        # A closed loop has no waiting task.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(settle, act, value)

    request.add_callbacks(
        partial(settle_later, arrival.set_result), partial(settle_later, arrival.set_exception)
    )
    return ResultSet(request, await arrival)


async def apart(function: Callable[[], T], undo: Callable[[T], object] | None = None) -> T:
    """Run a blocking function in a thread; after a cancellation, pass a late result to `undo`."""
    outcome = started(function, undo)
    try:
        return await asyncio.wrap_future(outcome)
    except asyncio.CancelledError:
        # The result may have arrived between the cancellation and now.
        if not outcome.cancel() and undo is not None and outcome.exception() is None:
            undo(outcome.result())
        raise
