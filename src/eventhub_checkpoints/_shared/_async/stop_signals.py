"""SIGTERM and Ctrl-C as a request to stop an event loop's program."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from eventhub_checkpoints._shared.signals import STOP_SIGNALS


@contextmanager
def on_stop_signals(stop: Callable[[], object], *, once: bool = False) -> Iterator[None]:
    """Call a function on SIGTERM and SIGINT in this block, if this thread may handle signals.

    Args:
        stop: called in the event loop.
        once: whether a second signal has the effect that it has outside of the block.
    """
    loop, taken = asyncio.get_running_loop(), list[int]()

    def handle() -> None:
        if once:
            restore()
        stop()

    def restore() -> None:
        while taken:
            loop.remove_signal_handler(taken.pop())

    for number in STOP_SIGNALS:
        # Only the main thread's event loop can handle signals, and none on Windows.
        with suppress(NotImplementedError, RuntimeError, ValueError):
            loop.add_signal_handler(number, handle)
            taken.append(number)
    try:
        yield
    finally:
        restore()
