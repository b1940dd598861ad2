"""Task in which the client of a group works on one partition."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from eventhub_checkpoints.sdk.stack import frames_of, line_of


class Worker:
    """Runs a coroutine function in a task.

    Args:
        name: of the task.
        function: what it runs.
        args: its arguments.
    """

    def __init__(
        self, name: str, function: Callable[..., Coroutine[Any, Any, None]], *args: object
    ) -> None:

        async def run() -> None:
            self._is_started = True
            await function(*args)

        self._is_started = self._is_interrupted = False
        self._task = asyncio.get_running_loop().create_task(run(), name=name)

    @property
    def is_over(self) -> bool:
        """Return whether the function has ended."""
        return self._task.done()

    def handler(self) -> str | None:
        """Return the file, line and function that the task has reached; None: it has ended."""
        frames = [*frames_of(self._task)]
        return line_of(frames[-1]) if frames else None

    def interrupt(self) -> None:
        """Cancel what the function awaits; not what it does about that, nor before it has begun."""
        if self._is_started and not self._is_interrupted:
            self._is_interrupted = True
            self._task.cancel()

    async def wait(self) -> None:
        """Wait until the function has ended."""
        await asyncio.wait([self._task])
