"""Reads from stores and hubs that a page waits for, and that may take long or hang."""

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

from eventhub_checkpoints._shared.workers import in_daemon_thread
from eventhub_checkpoints.errors import CheckpointStoreError

READ_TIMEOUT = 30.0
"""Time limit of a read."""
CONCURRENT_READS = 8
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

    def __init__(self, seconds: float = READ_TIMEOUT, most: int = CONCURRENT_READS) -> None:
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

        def counted() -> T:
            try:
                return read()
            finally:
                self._free.release()

        answer = asyncio.wrap_future(in_daemon_thread(counted))
        ended, _ = await asyncio.wait([answer], timeout=self._seconds)
        if not ended:
            answer.cancel()
            raise CheckpointStoreError(
                f"the store or the hub has not answered within {self._seconds:g} s"
            )
        return answer.result()
