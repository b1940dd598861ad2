"""Deadline of the current call, and the pauses between its attempts."""

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import Context, ContextVar, copy_context

LONGEST_SECONDS = 60.0
"""Limit for one request of a call without a deadline."""
LONGEST_WAIT = 3600.0
"""Limit of a wait in such a call, for what accepts no infinite time: a socket, a server."""
NO_TIME = "no time was left for this request"

UNREACHABLE_TIMEOUT = 5.0
"""Seconds for which a person waits for a server that refuses connections or is not known."""

_deadline: ContextVar[float] = ContextVar("eventhub_checkpoints_deadline", default=math.inf)
_unreachable_timeout: ContextVar[float] = ContextVar("eventhub_checkpoints_reach", default=math.inf)


def seconds_left() -> float:
    """Return the seconds until the current call's deadline; `inf` without one, 0 when it passed."""
    return max(_deadline.get() - time.monotonic(), 0.0)


def finite_seconds_left() -> float:
    """Return the seconds until the current call's deadline; `LONGEST_WAIT` without one."""
    return min(seconds_left(), LONGEST_WAIT)


def bound() -> float:
    """Return the seconds that a driver may take for the next request.

    Raises:
        TimeoutError: no time is left.
    """
    left = seconds_left()
    if left <= 0:
        raise TimeoutError(NO_TIME)
    return LONGEST_SECONDS if math.isinf(left) else left


def bounded_context(seconds: float) -> Context:
    """Return a copy of the current context with a deadline; an earlier one stays in force."""
    context = copy_context()
    context.run(_deadline.set, min(_deadline.get(), time.monotonic() + seconds))
    return context


def set_unreachable_timeout(seconds: float) -> None:
    """Set for how long the current call tries to connect; see `shorten_if_unreachable`.

    Only for code inside of a `bounded_context`.
    """
    _unreachable_timeout.set(seconds)


def shorten_if_unreachable() -> float:
    """Bring the deadline forward, as the server refused a connection; return the seconds left.

    Only by what `set_unreachable_timeout` has set for the current call, and only for code inside of
    a `bounded_context`.
    """
    if not math.isinf(_unreachable_timeout.get()):
        _deadline.set(min(_deadline.get(), time.monotonic() + _unreachable_timeout.get()))
    return seconds_left()


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Run the block with a deadline; an earlier one stays in force.

    Only for code inside of a `bounded_context`: an exception from a signal handler could skip the
    reset, and later calls in the same context would keep the deadline.

    Raises:
        TimeoutError: no time is left.
    """
    if seconds <= 0:
        raise TimeoutError(NO_TIME)
    token = _deadline.set(min(_deadline.get(), time.monotonic() + seconds))
    try:
        yield
    finally:
        with suppress(ValueError):  # an unfinished coroutine is collected in another context
            _deadline.reset(token)


FIRST_PAUSE = 0.1
LONGEST_PAUSE = 3.0
WORTHWHILE = 0.05
"""Seconds that another attempt needs at least."""


def backoff(attempt: int, chance: float) -> float:
    """Return the seconds to wait after attempt `attempt` (from 0) of what is never given up.

    Doubles from 0.1 s to 3 s. `chance` (0 to 1) spreads it over the upper half of that, so that
    many clients do not retry in step.
    """
    return min(FIRST_PAUSE * 2.0 ** min(attempt, 10), LONGEST_PAUSE) * (0.5 + chance / 2)


def pause(attempt: int, seconds_left: float, chance: float) -> float | None:
    """Return the seconds to wait after attempt `attempt` (from 0); None to give up.

    As `backoff`, but at most half of what is left, so that the time is used to its end.
    """
    wait = min(backoff(attempt, chance), max(seconds_left / 2, FIRST_PAUSE))
    return wait if wait + WORTHWHILE < seconds_left else None


def attempt_limit(seconds: float) -> float:
    """Return the limit of one attempt: half of the total, so that time is left for another."""
    return seconds / 2
