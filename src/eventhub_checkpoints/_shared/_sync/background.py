# Not derived: edit this file and its async twin together.
"""Background thread that starts work when it is due."""

import os
import threading
import time
from collections.abc import Callable
from functools import partial
from queue import Empty, SimpleQueue

MOST_THREADS = 32
"""Maximum number of calls that run at once."""
IDLE_SECONDS = 60.0
"""Seconds after which an idle thread ends; a driver may keep connections per thread."""


class Signal:
    """Event that a thread waits for."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def set(self) -> None:
        """Wake the waiting thread."""
        if not self._event.is_set():
            self._event.set()

    def clear(self) -> None:
        """Reset the signal, so that the next `wait` blocks."""
        self._event.clear()

    def wait(self, seconds: float) -> bool:
        """Wait up to `seconds` for the signal; return whether it was set."""
        return self._event.wait(min(max(seconds, 0), threading.TIMEOUT_MAX))


class Crew:
    """Daemon threads for calls.

    A call that hangs blocks its thread, but not the exit of the program; an executor's threads
    would, because the interpreter joins them.
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
                    # A call that was submitted in the meantime relies on this thread.
                    if self._unfinished < self._threads:
                        self._threads -= 1
                        return None

    def stop(self, seconds: float) -> None:
        """Wait up to `seconds` until every call has ended, then let the threads end."""
        with self._changed:
            self._changed.wait_for(lambda: not self._unfinished, seconds)
            for _ in range(self._threads):
                self._calls.put(None)
            self._threads = 0


class Background:
    """Thread that checks for due work, and the threads that it starts.

    Args:
        run_due: starts due work and returns the seconds until the next call; `wake` triggers an
            earlier call. Must not raise.
    """

    def __init__(self, run_due: Callable[[], float]) -> None:
        self._run_due = run_due
        self._signal = Signal()
        self._crew = Crew()
        self._thread: threading.Thread | None = None
        self._process_id = 0

    @property
    def is_alive(self) -> bool:
        """Return whether the thread runs in this process."""
        thread = self._thread
        return thread is not None and thread.is_alive() and self._process_id == os.getpid()

    def start(self) -> None:
        """Start the thread, unless it already runs."""
        if not self.is_alive:
            # Also after a fork: a child has neither its parent's threads nor usable locks.
            self._process_id, self._signal, self._crew = os.getpid(), Signal(), Crew()
            # Daemon: a program must be able to end without calling `close`.
            self._thread = threading.Thread(
                target=self._run, name="eventhub-checkpoints", daemon=True
            )
            self._thread.start()

    def wake(self) -> None:
        """Check for due work now."""
        self._signal.set()

    def begin(self, function: Callable[..., None], *args: object) -> None:
        """Run a function in a thread; it must not raise."""
        self._crew.begin(partial(function, *args))

    def _run(self) -> None:
        signal = self._signal
        while self._thread is threading.current_thread():
            signal.clear()
            signal.wait(self._run_due())

    def stop(self, seconds: float) -> None:
        """Stop checking and wait up to `seconds` for running calls."""
        thread, self._thread = self._thread, None
        if thread is None or self._process_id != os.getpid():
            return
        end = time.monotonic() + seconds
        self._signal.set()
        # Another thread may be just before it starts this one, which then ends by itself.
        if thread.is_alive() and thread is not threading.current_thread():
            thread.join(seconds)
        crew, self._crew = self._crew, Crew()
        crew.stop(max(end - time.monotonic(), 0))
