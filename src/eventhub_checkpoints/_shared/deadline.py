"""Time that the current call has left, and pauses between its attempts."""

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


FIRST_PAUSE = 0.1
LONGEST_PAUSE = 3.0
WORTHWHILE = 0.05


def pause(attempt: int, seconds_left: float, chance: float) -> float | None:
    """The pause after attempt number `attempt` (from 0), in seconds; None: give up.

    Doubles from 0.1 s to 3 s, spread over half to the whole of that by `chance` (0 to 1) so that
    many clients do not come back in step.
    """
    wait = min(FIRST_PAUSE * 2 ** min(attempt, 10), LONGEST_PAUSE) * (0.5 + chance / 2)
    return wait if wait + WORTHWHILE < seconds_left else None


def attempt_limit(seconds_left: float, seconds: float) -> float:
    """How long one attempt may take: half of the whole; a hung one leaves time for another."""
    return max(min(seconds_left, seconds / 2), 0.0)
