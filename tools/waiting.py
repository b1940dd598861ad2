"""Polling for a condition that another thread or process fulfils."""

import time
from collections.abc import Callable
from typing import Any


def eventually(predicate: Callable[[], Any], seconds: float = 120.0) -> Any:
    """Return the predicate's result as soon as it is true."""
    deadline = time.monotonic() + seconds
    while not (found := predicate()):
        assert time.monotonic() < deadline, f"not in {seconds:g} s"
        time.sleep(0.01)
    return found
