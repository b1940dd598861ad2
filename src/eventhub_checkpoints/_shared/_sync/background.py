# Not derived: edit this file and its async twin together.
"""Work beside the caller: looking whether something is due, and what that starts."""

import os
import threading
import time
from collections.abc import Callable
from functools import partial
from queue import Empty, SimpleQueue

MOST_THREADS = 32
"""For calls that are under way at once."""
IDLE_SECONDS = 60.0
"""After which a thread that has nothing to call ends; a driver may keep connections by thread."""


class Signal:
    """Lets a thread wait until something has happened."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def set(self) -> None:
        """Wake whoever waits."""
        if not self._event.is_set():
            self._event.set()

    def clear(self) -> None:
        """From now on, wait for the next."""
        self._event.clear()

    def wait(self, seconds: float) -> bool:
        """Wait until it is set, at most so long; whether it was."""
        return self._event.wait(min(max(seconds, 0), threading.TIMEOUT_MAX))


class Crew:
    """Threads for calls. A call that hangs keeps its thread, and no program from ending.

    The threads of an executor would: the interpreter waits for them.
    """

    def __init__(self) -> None:
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._changed = threading.Condition()
        self._unfinished = self._threads = 0

    def begin(self, call: Callable[[], None]) -> None:
        """Call a function in a thread, as soon as one is free."""
        with self._changed:
            needs_thread = self._threads <= self._unfinished < MOST_THREADS
            if needs_thread:
                threading.Thread(
                    target=self._work, name="eventhub-checkpoints", daemon=True
                ).start()
            self._threads += needs_thread
            self._unfinished += 1
        self._calls.put(call)

    def _work(self) -> None:
        while (call := self._next()) is not None:
            try:
                call()
            finally:
                with self._changed:
                    self._unfinished -= 1
                    self._changed.notify_all()

    def _next(self) -> Callable[[], None] | None:
        while True:
            try:
                return self._calls.get(timeout=IDLE_SECONDS)
            except Empty:
                with self._changed:
                    # A call that was begun meanwhile counts on this thread.
                    if self._unfinished < self._threads:
                        self._threads -= 1
                        return None

    def stop(self, seconds: float) -> None:
        """Wait until every call has ended, at most so long; then let the threads end."""
        with self._changed:
            self._changed.wait_for(lambda: not self._unfinished, seconds)
            for _ in range(self._threads):
                self._calls.put(None)
            self._threads = 0


class Background:
    """A thread that looks after something, and the threads that it starts.

    Args:
        look: starts what is due, and gives the seconds after which it is to be called again; it
            is called earlier after `wake`. It does not raise.
    """

    def __init__(self, look: Callable[[], float]) -> None:
        self._look = look
        self._signal = Signal()
        self._crew = Crew()
        self._thread: threading.Thread | None = None
        self._process_id = 0

    @property
    def is_alive(self) -> bool:
        """Whether it looks, in this process."""
        thread = self._thread
        return thread is not None and thread.is_alive() and self._process_id == os.getpid()

    def start(self) -> None:
        """Look from now on; where it does so already, nothing changes."""
        if not self.is_alive:
            # After a fork, too: a child has none of its parent's threads, and not its locks.
            self._process_id, self._signal, self._crew = os.getpid(), Signal(), Crew()
            # A daemon: a program that ends without `close` has to end all the same.
            self._thread = threading.Thread(
                target=self._run, name="eventhub-checkpoints", daemon=True
            )
            self._thread.start()

    def wake(self) -> None:
        """Look now."""
        self._signal.set()

    def begin(self, function: Callable[..., None], *args: object) -> None:
        """Call a function beside the caller; it does not raise."""
        self._crew.begin(partial(function, *args))

    def _run(self) -> None:
        signal = self._signal
        while self._thread is threading.current_thread():
            signal.clear()
            signal.wait(self._look())

    def stop(self, seconds: float) -> None:
        """Look no more, and wait for what was started, at most so long."""
        thread, self._thread = self._thread, None
        if thread is None or self._process_id != os.getpid():
            return
        end = time.monotonic() + seconds
        self._signal.set()
        if thread is not threading.current_thread():
            thread.join(seconds)
        crew, self._crew = self._crew, Crew()
        crew.stop(max(end - time.monotonic(), 0))
