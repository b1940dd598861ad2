"""Reads from stores and hubs that a page waits for, and that may take long or hang."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from eventhub_checkpoints.errors import CheckpointStoreError

SECONDS = 30.0
"""Time limit of a read."""
MOST = 8
"""Reads that run at the same time, including those that nobody waits for any more."""

T = TypeVar("T")


class Readings:
    """Runs reads in threads of their own.

    The threads of Starlette are few and serve all pages, and the process waits for them at its end:
    a store without a time limit would block both.

    Args:
        seconds: time limit of a read.
        most: number of reads that may run at the same time.
    """

    def __init__(self, seconds: float = SECONDS, most: int = MOST) -> None:
        self._seconds = seconds
        self._most = most
        self._free = threading.Semaphore(most)

    async def run(self, read: Callable[[], T]) -> T:
        """Return the result of a read.

        Raises:
            CheckpointStoreError: it has not ended in time, or too many are running; or its own.
        """
        if not self._free.acquire(blocking=False):
            raise CheckpointStoreError(
                f"{self._most} reads from stores and hubs are running; try again later"
            )
        future: Future[T] = Future()
        # From now on, a caller that stops waiting does not cancel it.
        future.set_running_or_notify_cancel()
        threading.Thread(target=self._run, args=(read, future), name="read", daemon=True).start()
        answer = asyncio.wrap_future(future)
        ended, _ = await asyncio.wait([answer], timeout=self._seconds)
        if not ended:
            answer.cancel()
            raise CheckpointStoreError(
                f"the store or the hub has not answered within {self._seconds:g} s"
            )
        return answer.result()

    def _run(self, read: Callable[[], T], future: "Future[T]") -> None:
        try:
            result = read()
        except BaseException as error:
            self._free.release()
            future.set_exception(error)
        else:
            self._free.release()
            future.set_result(result)
