# Not derived: edit this file and its async twin together.
"""A client that receives beside the caller, from start to stop."""

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGTERM, signal.SIGINT)
CLOSING_AGAIN = 0.2
"""Seconds after which a client that still receives is closed again."""
LOOKING_UP = 0.5
"""Seconds after which who waits lets a signal in; on Windows none interrupts a wait."""


class Life:
    """The thread in which a client receives."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._guard = threading.Lock()
        self._is_begun = False
        self._over = threading.Event()

    @property
    def is_running(self) -> bool:
        """Whether it was started, and `end` not called."""
        return self._thread is not None

    def begin(self) -> bool:
        """Begin anew, unless it is begun: nothing said so far is a reason to stop."""
        with self._guard:
            if self._is_begun:
                return False
            self._is_begun = True
        self._over.clear()
        return True

    def start(self, receive: Callable[[], None]) -> None:
        """Receive from now on; the function does not raise."""

        def received() -> None:
            try:
                receive()
            finally:
                self._over.set()

        self._thread = threading.Thread(target=received, name="event-processor", daemon=True)
        self._thread.start()

    def tell(self) -> None:
        """Say that there is a reason to stop."""
        self._over.set()

    def until_over(self) -> None:
        """Wait until there is a reason to stop."""
        while not self._over.wait(LOOKING_UP):
            pass

    def ask(self, close: Callable[[], None]) -> None:
        """Have it stop receiving, and do not wait for that.

        Args:
            close: closes the client: there is no other way to have it stop.
        """
        self.tell()
        close()

    def stop(self, close: Callable[[], None], seconds: float | None) -> bool:
        """Stop receiving, and wait until all partitions are closed; whether they are.

        Args:
            close: see `ask`.
            seconds: to wait at most.
        """
        end = math.inf if seconds is None else time.monotonic() + seconds
        thread = self._thread
        while thread is not None and thread.is_alive():
            # Once may have been before it began to receive, and is forgotten then.
            self.ask(close)
            thread.join(max(min(CLOSING_AGAIN, end - time.monotonic()), 0))
            if thread.is_alive() and time.monotonic() >= end:
                return False
        self.tell()
        return True

    def end(self) -> None:
        """It may begin anew."""
        self._thread = None
        self._is_begun = False

    @contextmanager
    def signals(self) -> Iterator[None]:
        """Take SIGTERM and SIGINT for a reason to stop, where this thread may."""

        def taken(number: int, frame: FrameType | None) -> None:
            # Not from here: what is interrupted may hold the event's lock.
            threading.Thread(target=self.tell, daemon=True).start()

        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, taken) for number in SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
