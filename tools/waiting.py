"""Polling for a condition that another thread or process fulfils."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

LIMIT = 120.0
"""Seconds after which what a test waits for counts as lost: the one limit of all waits for
something real, so long that no pause of a busy machine reaches it."""


def eventually(predicate: Callable[[], Any], seconds: float = LIMIT) -> Any:
    """Return the predicate's result as soon as it is true."""
    deadline = time.monotonic() + seconds
    while not (found := predicate()):
        assert time.monotonic() < deadline, f"not in {seconds:g} s"
        time.sleep(0.01)
    return found


def let_pass(seconds: float) -> None:
    """Wait in real time: for tests with the marker `long`."""
    time.sleep(seconds)


@contextmanager
def takes(seconds: float, more: float = 20.0) -> Iterator[None]:
    """Check how long the block takes on the real clock: for tests with the marker `long`.

    Args:
        seconds: what it takes at least, but for the resolution of clocks.
        more: what a busy machine may add.
    """
    began = time.monotonic()
    yield
    took = time.monotonic() - began
    assert seconds - 0.05 < took < seconds + more, f"took {took:.2f} s"
