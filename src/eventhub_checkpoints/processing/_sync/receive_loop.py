# Not derived: edit this file and its async twin together.
"""Background thread of a client, and calls of its handlers."""

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from eventhub_checkpoints._shared._sync.client_check import called
from eventhub_checkpoints._shared._sync.stop_signals import on_stop_signals
from eventhub_checkpoints.sdk.consumer import open_links
from eventhub_checkpoints.sdk.stack import calling_loop

T = TypeVar("T")


def to_the_end(function: Callable[..., T], *args: Any, seconds: float | None = None) -> T:
    """Call the function; a thread cannot be cancelled."""
    return function(*args)


OPENING = 0.2
"""Seconds for which a batch waits for links that are being opened: as the client waits for an idle
partition, by default.
"""


def let_links_open() -> None:
    """Let links of the client go on opening, before the handler that it calls here."""
    open_links(calling_loop(), OPENING)


HANDLER: ContextVar[object] = ContextVar("eventhub_checkpoints_handler", default=None)
"""Thread that runs a user's function; a thread that this one starts may inherit the value."""


@contextmanager
def as_handler() -> Iterator[None]:
    """Mark the calls in this block as a user's function that the processor waits for."""
    token = HANDLER.set(threading.current_thread())
    try:
        yield
    finally:
        HANDLER.reset(token)


def is_handler() -> bool:
    """Return whether the caller is a function that the processor waits for."""
    return HANDLER.get() is threading.current_thread()


class HandlerTask:
    """Runs the handlers of one session in the thread in which the client delivers and closes."""

    def begin(self, function: Callable[..., None], *args: Any) -> None:
        """Call a function."""
        function(*args)

    run = begin

    def try_call(self, function: Callable[..., Any], *args: Any) -> BaseException | None:
        """Call a user's function; return its exception."""
        try:
            with as_handler():
                called(function, *args)
        except BaseException as error:
            return error
        return None

    def end(self, seconds: float) -> bool:
        """Return True: no handler runs while a partition is closed."""
        return True


ONE_THREAD = True
"""Whether the client calls the handlers of all partitions in one thread, one after another."""


CLOSING_AGAIN = 0.2
"""Seconds after which a client that still receives is closed again."""
LOOKING_UP = 0.5
"""Seconds after which a wait lets signals be handled; on Windows they do not interrupt it."""


class ReceiveLoop:
    """Thread in which a client receives."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._guard = threading.Lock()
        self._is_begun = False
        self._over = threading.Event()

    @property
    def is_running(self) -> bool:
        """Return whether it was started and `end` was not called."""
        return self._thread is not None

    def begin(self) -> bool:
        """Begin a new run, unless one has begun; discard earlier reasons to stop."""
        with self._guard:
            if self._is_begun:
                return False
            self._is_begun = True
        self._over.clear()
        return True

    def start(self, receive: Callable[[], None]) -> None:
        """Start receiving; the function does not raise."""

        def received() -> None:
            try:
                receive()
            finally:
                self._over.set()

        self._thread = threading.Thread(target=received, name="event-processor", daemon=True)
        self._thread.start()

    @property
    def is_unstarted(self) -> bool:
        """Return whether no run has begun that `wait` could wait for, nor has one ended."""
        return not (self._is_begun or self._over.is_set())

    def signal_end(self) -> None:
        """Signal that there is a reason to stop."""
        self._over.set()

    def wait(self) -> None:
        """Wait until there is a reason to stop."""
        while not self._over.wait(LOOKING_UP):
            pass

    def request_stop(self, close: Callable[[], None]) -> None:
        """Stop receiving, without waiting for the end.

        Args:
            close: closes the client, the only way to have it stop.
        """
        self.signal_end()
        close()

    def stop(self, close: Callable[[], None], seconds: float | None) -> bool:
        """Stop receiving, and wait until all partitions are closed; return whether they are.

        Args:
            close: see `request_stop`.
            seconds: maximum wait; None: no limit.
        """
        end = math.inf if seconds is None else time.monotonic() + seconds
        thread = self._thread
        while thread is not None and thread.is_alive():
            # Repeated: a close before the client begins to receive has no effect.
            self.request_stop(close)
            thread.join(max(min(CLOSING_AGAIN, end - time.monotonic()), 0))
            if thread.is_alive() and time.monotonic() >= end:
                return False
        self.signal_end()
        return True

    def end(self) -> None:
        """Allow a new run to begin."""
        self._thread = None
        self._is_begun = False

    def signals(self) -> AbstractContextManager[object]:
        """Treat SIGTERM and SIGINT as a reason to stop, if this thread may handle signals."""
        return on_stop_signals(self.signal_end)
