"""SIGTERM and Ctrl-C as a request to stop."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def on_stop_signals(stop: Callable[[], None], *, once: bool = False) -> Iterator[list[int]]:
    """Call a function on SIGTERM and SIGINT in this block, if this is the main thread.

    Args:
        stop: called in another thread: the interrupted code may hold the lock of the event that it
            sets, on its way into `wait`.
        once: whether a second signal has the effect that it has outside of the block.

    Yields:
        The numbers of the signals that have come.
    """
    received: list[int] = []

    def handle(number: int, frame: FrameType | None) -> None:
        received.append(number)
        if once:
            restore()
        threading.Thread(target=stop, daemon=True).start()

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    if threading.current_thread() is not threading.main_thread():
        yield received
        return
    before = {number: signal.signal(number, handle) for number in STOP_SIGNALS}
    try:
        yield received
    finally:
        restore()


@contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """End this block on SIGTERM as on Ctrl-C, by an exception, if this is the main thread.

    Raises:
        SystemExit: its status is 143, that of a process that SIGTERM has ended.
    """

    def handle(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def blocked_stop_signals() -> Iterator[None]:
    """Block SIGTERM and SIGINT in this thread and those that it starts, for `signal.sigwait`."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
