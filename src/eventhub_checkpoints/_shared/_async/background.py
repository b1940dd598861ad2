"""Work beside the caller: looking whether something is due, and what that starts."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from contextvars import Context
from typing import Any

LONGEST_WAIT = 1e6
"""Seconds; an event loop takes no infinite time."""


class Signal:
    """Lets a task of the running event loop wait until something has happened.

    Any thread may say so.
    """

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._is_set = False

    def set(self) -> None:
        """Wake whoever waits."""
        # Many events may end before the waiting task runs; one of them has to call the loop.
        if not self._is_set:
            self._is_set = True
            with suppress(RuntimeError):  # the loop is closed, and nobody waits any more
                self._loop.call_soon_threadsafe(self._event.set)

    def clear(self) -> None:
        """From now on, wait for the next."""
        self._is_set = False
        self._event.clear()

    async def wait(self, seconds: float) -> bool:
        """Wait until it is set, at most so long; whether it was."""
        try:
            async with asyncio.timeout(min(max(seconds, 0), LONGEST_WAIT)):
                await self._event.wait()
        except TimeoutError:
            return False
        return True


class Background:
    """A task that looks after something, and the tasks that it starts.

    Args:
        look: starts what is due, and gives the seconds after which it is to be called again; it
            is called earlier after `wake`. It does not raise.
    """

    def __init__(self, look: Callable[[], float]) -> None:
        self._look = look
        self._signal: Signal | None = None
        self._looking: asyncio.Task[None] | None = None
        self._running: set[asyncio.Task[None]] = set()
        self._process_id = 0

    @property
    def is_alive(self) -> bool:
        """Whether it looks, in this process."""
        looking = self._looking
        return looking is not None and not looking.done() and self._process_id == os.getpid()

    @property
    def _has_moved(self) -> bool:
        """Whether another event loop runs now; the one before may be there and never run again."""
        looking = self._looking
        return looking is not None and looking.get_loop() is not asyncio.get_running_loop()

    def start(self) -> None:
        """Look from now on; where it does so already, nothing changes."""
        if not self.is_alive or self._has_moved:
            self._process_id, self._signal, self._running = os.getpid(), Signal(), set()
            self._looking = self._task(self._run(self._signal))

    def wake(self) -> None:
        """Look now."""
        if self._signal is not None:
            self._signal.set()

    def begin(self, function: Callable[..., Awaitable[None]], *args: object) -> None:
        """Call a function beside the caller; it does not raise."""

        async def called() -> None:
            await function(*args)

        task = self._task(called())
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    def _task(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        # In a context of its own: the caller's deadline is not that of what outlives the call.
        return asyncio.get_running_loop().create_task(work, context=Context())

    async def _run(self, signal: Signal) -> None:
        while True:
            signal.clear()
            await signal.wait(self._look())

    async def stop(self, seconds: float) -> None:
        """Look no more, and wait for what was started, at most so long; then it is cut off."""
        if self._looking is None or not self.is_alive:
            return
        looking, self._looking = self._looking, None
        looking.cancel()
        await asyncio.wait([looking, *self._running], timeout=seconds)
        for task in self._running:
            task.cancel()
