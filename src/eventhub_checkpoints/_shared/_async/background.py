"""Background task that starts work when it is due."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from contextvars import Context
from typing import Any

LONGEST_WAIT = 1e6
"""Seconds. An event loop does not accept an infinite timeout."""


class Signal:
    """Event that a task of the running event loop waits for.

    It can be set from any thread.
    """

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._is_set = False

    def set(self) -> None:
        """Wake the waiting task."""
        # Many events can end before the waiting task runs; one call into the loop is enough.
        if not self._is_set:
            self._is_set = True
            with suppress(RuntimeError):  # the loop is closed, so nothing is waiting
                self._loop.call_soon_threadsafe(self._event.set)

    def clear(self) -> None:
        """Reset the signal, so that the next `wait` blocks."""
        self._is_set = False
        self._event.clear()

    async def wait(self, seconds: float) -> bool:
        """Wait up to `seconds` for the signal; return whether it was set."""
        try:
            async with asyncio.timeout(min(max(seconds, 0), LONGEST_WAIT)):
                await self._event.wait()
        except TimeoutError:
            return False
        return True


class Background:
    """Task that checks for due work, and the tasks that it starts.

    Args:
        run_due: starts due work and returns the seconds until the next call; `wake` triggers an
            earlier call. Must not raise.
    """

    def __init__(self, run_due: Callable[[], float]) -> None:
        self._run_due = run_due
        self._signal: Signal | None = None
        self._scheduler: asyncio.Task[None] | None = None
        self._running: set[asyncio.Task[None]] = set()
        self._process_id = 0

    @property
    def is_alive(self) -> bool:
        """Return whether the task runs in this process."""
        scheduler = self._scheduler
        return scheduler is not None and not scheduler.done() and self._process_id == os.getpid()

    @property
    def _has_moved(self) -> bool:
        """Return whether the event loop has changed; the earlier one may never run again."""
        scheduler = self._scheduler
        return scheduler is not None and scheduler.get_loop() is not asyncio.get_running_loop()

    def start(self) -> None:
        """Start the task, unless it already runs."""
        if not self.is_alive or self._has_moved:
            self._process_id, self._signal, self._running = os.getpid(), Signal(), set()
            self._scheduler = self._task(self._run(self._signal))

    def wake(self) -> None:
        """Check for due work now."""
        if self._signal is not None:
            self._signal.set()

    def begin(self, function: Callable[..., Awaitable[None]], *args: object) -> None:
        """Run a function in a task; it must not raise."""

        async def called() -> None:
            await function(*args)

        task = self._task(called())
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    def _task(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        # An empty context: the task outlives the call and must not inherit its deadline.
        return asyncio.get_running_loop().create_task(work, context=Context())

    async def _run(self, signal: Signal) -> None:
        while True:
            signal.clear()
            await signal.wait(self._run_due())

    async def stop(self, seconds: float) -> None:
        """Stop checking and wait up to `seconds` for running tasks, then cancel them."""
        if self._scheduler is None or not self.is_alive:
            return
        scheduler, self._scheduler = self._scheduler, None
        scheduler.cancel()
        await asyncio.wait([scheduler, *self._running], timeout=seconds)
        for task in self._running:
            task.cancel()
