"""A client that receives beside the caller, from start to stop."""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress

SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Life:
    """The task in which a client receives."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None
        self._is_begun = False
        self._over = asyncio.Event()
        self._is_cancelled = False

    @property
    def is_running(self) -> bool:
        """Whether it was started, and `end` not called."""
        return self._task is not None

    def begin(self) -> bool:
        """Begin anew, unless it is begun: nothing said so far is a reason to stop."""
        if self._is_begun:
            return False
        self._is_begun = True
        # An event belongs to the loop that waited for it, and this may be another.
        self._over = asyncio.Event()
        return True

    def start(self, receive: Callable[[], Awaitable[None]]) -> None:
        """Receive from now on; the function does not raise."""

        async def received() -> None:
            try:
                await receive()
            finally:
                self._over.set()

        self._is_cancelled = False
        self._task = asyncio.get_running_loop().create_task(received())

    def tell(self) -> None:
        """Say that there is a reason to stop."""
        self._over.set()

    async def until_over(self) -> None:
        """Wait until there is a reason to stop."""
        await self._over.wait()

    async def ask(self, close: Callable[[], Awaitable[None]]) -> None:
        """Have it stop receiving, and do not wait for that.

        Args:
            close: what stops a client that cannot be cancelled.
        """
        # A task that is cancelled before it has begun says nothing.
        self.tell()
        # Once: a second time would cut off the closing of the partitions.
        if self._task is not None and not self._is_cancelled:
            self._is_cancelled = True
            self._task.cancel()

    async def stop(self, close: Callable[[], Awaitable[None]], seconds: float | None) -> bool:
        """Stop receiving, and wait until all partitions are closed; whether they are.

        Args:
            close: see `ask`.
            seconds: to wait at most.
        """
        task = self._task
        await self.ask(close)
        if task is not None:
            await asyncio.wait([task], timeout=seconds)
        return task is None or task.done()

    def end(self) -> None:
        """It may begin anew."""
        self._task = None
        self._is_begun = False

    @contextmanager
    def signals(self) -> Iterator[None]:
        """Take SIGTERM and SIGINT for a reason to stop, where this thread may."""
        loop, taken = asyncio.get_running_loop(), []
        for number in SIGNALS:
            # Only the main thread's event loop can, and none on Windows.
            with suppress(NotImplementedError, RuntimeError, ValueError):
                loop.add_signal_handler(number, self.tell)
                taken.append(number)
        try:
            yield
        finally:
            for number in taken:
                loop.remove_signal_handler(number)
