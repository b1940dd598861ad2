"""An event loop in a thread of its own, for callers from any other thread."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

T = TypeVar("T")


class BackgroundLoop:
    """Runs functions and coroutines on one thread, one at a time, and hands the results back."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine and wait for its result."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def call(self, function: Callable[[], T]) -> T:
        """Call a function on the loop's thread and wait for its result."""
        done: Future[T] = Future()

        def work() -> None:
            try:
                done.set_result(function())
            except BaseException as error:
                done.set_exception(error)

        self._loop.call_soon_threadsafe(work)
        return done.result()

    def stop(self) -> None:
        """Cancel what still runs, and end the thread."""
        self.run(_end_others())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _end_others() -> None:
    # A connection that has just come in is a task: cancelled before it begins, it would leave its
    # socket open.
    await asyncio.sleep(0)
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
