"""Polling for a condition that another thread or process fulfils."""

import time
from collections.abc import Callable
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


def elapse(seconds: float) -> None:
    """Let real time pass: only for tests with the marker `long`."""
    time.sleep(seconds)
