"""How long the call that is running may still take.

A hook of a synchronous backend cannot be interrupted, so it asks for the time that is left and
passes it to its driver. The deadline follows the call into the threads and tasks it starts.
"""

import math
import time
from contextvars import ContextVar

LONGEST_SECONDS = 60.0
"""For one request of a call that is not bounded."""

_deadline: ContextVar[float] = ContextVar("eventhub_checkpoints_deadline", default=math.inf)


def seconds_left() -> float:
    """Seconds until the running call must have ended; `inf` outside of one, 0 when it is over."""
    return max(_deadline.get() - time.monotonic(), 0.0)


def bound() -> float:
    """The seconds that a driver may take for the request that is about to be made.

    Raises:
        TimeoutError: there are none.
    """
    left = seconds_left()
    if left <= 0:
        raise TimeoutError("no time was left for this request")
    return LONGEST_SECONDS if math.isinf(left) else left


class deadline:  # noqa: N801 - it reads as a verb, as those of contextlib
    """Bound what is called inside; an outer deadline that is nearer stays in force."""

    # No generator: every call of a store enters several, at twice the cost.
    __slots__ = ("_seconds", "_token")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def __enter__(self) -> None:
        self._token = _deadline.set(min(_deadline.get(), time.monotonic() + self._seconds))

    def __exit__(self, *_: object) -> None:
        _deadline.reset(self._token)
