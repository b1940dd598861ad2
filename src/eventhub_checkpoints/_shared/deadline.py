"""How long the running call may still take.

A hook of a synchronous backend cannot be interrupted, so it asks for the time that is left and
passes it to its driver. The deadline follows the call into the threads and tasks that it starts.

It is only ever set in a context of the call's own, and ends with that context. Setting it in the
caller's context and resetting it afterwards would not do: an exception raised by a signal handler
between the two leaves it set, and every later call of that thread would be over before it began.
"""

import math
import time
from contextvars import Context, ContextVar, copy_context

LONGEST_SECONDS = 60.0
"""For one request of a call that is not bounded."""

_deadline: ContextVar[float] = ContextVar("eventhub_checkpoints_deadline", default=math.inf)


def seconds_left() -> float:
    """Seconds until the running call must have ended; `inf` outside of one, 0 when it is over."""
    return max(_deadline.get() - time.monotonic(), 0.0)


def bound() -> float:
    """Return the seconds that a driver may take for the request that is about to be made.

    Raises:
        TimeoutError: no time is left.
    """
    left = seconds_left()
    if left <= 0:
        raise TimeoutError("no time was left for this request")
    return LONGEST_SECONDS if math.isinf(left) else left


def bounded_context(seconds: float) -> Context:
    """Return a copy of the current context with a deadline; an earlier one stays in force."""
    context = copy_context()
    context.run(_deadline.set, min(_deadline.get(), time.monotonic() + seconds))
    return context
