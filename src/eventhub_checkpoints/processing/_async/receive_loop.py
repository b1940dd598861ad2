"""Task in which a client receives, and tasks that run the user's handlers."""

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from typing import Any, TypeVar

from azure.eventhub.aio import EventHubConsumerClient

from eventhub_checkpoints._shared._async.client_check import called
from eventhub_checkpoints._shared._async.stop_signals import on_stop_signals
from eventhub_checkpoints.sdk.stack import awaits, is_between_rounds

log = logging.getLogger("eventhub_checkpoints")
T = TypeVar("T")
CANCELLING = 1.0
"""Seconds that a handler has to end after it was cancelled."""
LOOKING_UP = 0.5
"""Seconds after which a stop looks whether the client still balances its load."""


async def to_the_end(
    function: Callable[..., Awaitable[T]], *args: Any, seconds: float | None = None
) -> T:
    """Call the function; if the caller is cancelled, wait until the function has ended.

    Args:
        function: the function.
        *args: its arguments.
        seconds: maximum wait after the caller was cancelled; then the function is cancelled too.
            None: no limit.
    """
    task = asyncio.ensure_future(function(*args))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        with suppress(BaseException):
            await asyncio.wait([task], timeout=seconds)
        task.cancel()
        raise


def let_links_open() -> None:
    """Do nothing: a client opens each link in a task of its own."""


HANDLER: ContextVar[object] = ContextVar("eventhub_checkpoints_handler", default=None)
"""Task that runs a user's function. Tasks that it starts inherit the value, so `is_handler`
compares it with the current task.
"""


@contextmanager
def as_handler() -> Iterator[None]:
    """Mark the block as the call of a user's function that the processor waits for."""
    token = HANDLER.set(asyncio.current_task())
    try:
        yield
    finally:
        HANDLER.reset(token)


def is_handler() -> bool:
    """Return whether the current task runs a user's function that the processor waits for."""
    task = asyncio.current_task()
    return task is not None and HANDLER.get() is task


ONE_THREAD = False
"""Whether the client calls the handlers of all partitions in one thread, one after another."""


class HandlerTask:
    """Runs the handlers of one session in separate tasks.

    The client cancels a running handler when it stops, and abandons it when receiving fails. Here
    the handler continues in both cases, and closing the partition waits for it.
    """

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None
        self._caller: asyncio.Task[Any] | None = None
        self._cut_off: asyncio.Task[None] | None = None

    async def begin(self, function: Callable[..., Awaitable[None]], *args: Any) -> None:
        """Start the call of a function; `end` waits for it."""

        async def work() -> None:
            await function(*args)

        self._caller = asyncio.current_task()
        self._task = asyncio.get_running_loop().create_task(work())

    async def run(self, function: Callable[..., Awaitable[None]], *args: Any) -> None:
        """Call a function, and wait for it unless the caller is cancelled."""
        await self.begin(function, *args)
        assert self._task is not None
        await asyncio.shield(self._task)

    async def try_call(self, function: Callable[..., Any], *args: Any) -> BaseException | None:
        """Call a user's function; return its exception, or None.

        A function that ends with a cancellation of its own counts as failed.
        """
        try:
            with as_handler():
                await called(function, *args)
        except asyncio.CancelledError:
            if self._is_cancelled():
                raise
            return RuntimeError(f"{getattr(function, '__qualname__', function)} was cancelled")
        except BaseException as error:
            return error
        if asyncio.current_task() is self._cut_off:
            # The handler may have returned early because it was cancelled.
            raise asyncio.CancelledError
        return None

    def _is_cancelled(self) -> bool:
        """Return whether another task cancelled the current one."""
        task = asyncio.current_task()
        assert task is not None
        # If a program ends without stop(), all tasks are cancelled, including the caller.
        caller = self._caller if task is self._task else task
        if task is self._cut_off or (caller is not None and caller.cancelling()):
            return True
        task.uncancel()
        return False

    async def end(self, seconds: float) -> bool:
        """Wait for running calls; cancel them after `seconds` and return False.

        Does not wait for a handler that awaits `client.close()`, which waits for this method.
        """
        task = self._task
        if task is None:
            return True
        if awaits(task, EventHubConsumerClient.close):
            log.warning(
                "a handler awaits client.close(), so its events are read again: call stop() of the "
                "processor there"
            )
            return True
        await asyncio.wait([task], timeout=max(seconds, 0))
        if not task.done():
            self._cut_off = task
            task.cancel()
            await asyncio.wait([task], timeout=CANCELLING)
        if task.done() and not task.cancelled():
            # If the client's task was cancelled, nobody has retrieved the exception, and asyncio
            # would log that.
            task.exception()
        return task is not self._cut_off


class ReceiveLoop:
    """Task in which a client receives."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None
        self._is_begun = False
        self._over = asyncio.Event()
        self._is_cancelled = False

    @property
    def is_running(self) -> bool:
        """Return whether `start` was called, and `end` has not been called since."""
        return self._task is not None

    def begin(self) -> bool:
        """Prepare a new run unless one is active; discard earlier stop requests."""
        if self._is_begun:
            return False
        self._is_begun = True
        # An `asyncio.Event` belongs to the loop that first waited for it, which may have ended.
        self._over = asyncio.Event()
        return True

    def start(self, receive: Callable[[], Awaitable[None]]) -> None:
        """Start a task that receives; `receive` must not raise."""

        async def received() -> None:
            try:
                await receive()
            finally:
                self._over.set()

        self._is_cancelled = False
        self._task = asyncio.get_running_loop().create_task(received())

    @property
    def is_unstarted(self) -> bool:
        """Return whether no run has begun that `wait` could wait for, nor has one ended."""
        return not (self._is_begun or self._over.is_set())

    def signal_end(self) -> None:
        """Request that the processor stops; see `wait`."""
        self._over.set()

    async def wait(self) -> None:
        """Wait until a stop is requested or receiving has ended."""
        await self._over.wait()

    async def request_stop(self, close: Callable[[], Awaitable[None]]) -> None:
        """Start to stop receiving; do not wait for the end.

        Args:
            close: stops a sync client; not used here, where the task is cancelled instead.
        """
        # A task that is cancelled before it has started does not signal its end.
        self.signal_end()
        # Only once: a second cancellation would interrupt the closing of the partitions.
        if self._task is not None and not self._is_cancelled:
            self._is_cancelled = True
            self._task.cancel()

    async def stop(self, close: Callable[[], Awaitable[None]], seconds: float | None) -> bool:
        """Stop receiving, and wait until all partitions are closed; return whether they are.

        Args:
            close: see `request_stop`.
            seconds: maximum wait; None: no limit.
        """
        task, end = self._task, math.inf if seconds is None else time.monotonic() + seconds
        await self.request_stop(close)
        if task is None:
            return True
        while not task.done() and (rest := end - time.monotonic()) > 0:
            await asyncio.wait([task], timeout=min(rest, LOOKING_UP))
            # Before Python 3.12, `asyncio.wait_for` loses a cancellation that comes together with a
            # result, and azure-eventhub reads frames with it: the client then goes on.
            if is_between_rounds(task):
                task.cancel()
        return task.done()

    def end(self) -> None:
        """Allow a new run to begin."""
        self._task = None
        self._is_begun = False

    def signals(self) -> AbstractContextManager[object]:
        """Treat SIGTERM and SIGINT as stop requests, if this thread may handle signals."""
        return on_stop_signals(self.signal_end)
