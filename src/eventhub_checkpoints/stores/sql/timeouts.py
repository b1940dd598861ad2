"""How long a connection to PostgreSQL may be silent: until the running call is nearly over.

psycopg waits for its socket in a loop that wakes up ten times a second and tells the operation,
a generator, that nothing is there. No time-out of libpq or of TCP ends the wait for an answer.
"""

import math
import time
from collections.abc import Generator
from typing import Any

from eventhub_checkpoints._shared.deadline import seconds_left
from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints.errors import ConfigurationError

CANCEL_SHARE = 0.1
"""The part of the time that is left for telling the server that nobody waits any more."""
USUAL_CANCEL = 0.1
"""Seconds that this takes a server in another building: a connection of its own, and a question."""
LEAST_CANCEL = 0.02
"""Seconds; psycopg takes a time-out of 0 for none."""
LONGEST = 3600.0
"""Seconds, where a call is not bounded at all."""


class CutOffError(Exception):
    """The server did not answer in time. No OSError: psycopg would take it for a closed socket."""


def cut_off(operation: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """An operation of psycopg that ends when it still waits and the time is over.

    What leaves no time to be cancelled is not begun: the server might carry it out long after.

    Raises:
        CutOffError: see above.
    """
    left = seconds_left()
    kept = min(max(CANCEL_SHARE * left, USUAL_CANCEL), left / 2)
    if kept <= LEAST_CANCEL:
        raise CutOffError("no time was left for this request")
    over = math.inf if math.isinf(left) else time.monotonic() + left - kept
    try:
        wanted = next(operation)
        while True:
            ready = yield wanted
            if not ready and time.monotonic() >= over:
                raise CutOffError("the server did not answer in time")
            wanted = operation.send(ready)
    except StopIteration as end:
        return end.value


def interval() -> float:
    """How often a wait looks at the time, in seconds."""
    return min(0.1, max(seconds_left() / 20, 0.005))


def cancel_seconds() -> float | None:
    """How long to wait for a server that is told to end a request; None: there is no time."""
    return seconds_left() if seconds_left() > LEAST_CANCEL else None


def connect_seconds(given: Any) -> int:
    """The `connect_timeout` of a connect that begins now, if the URL does not ask for less.

    Whole seconds, and 2 at least, to libpq and psycopg alike; the operation itself is cut off.

    Raises:
        ConfigurationError: the URL does not give seconds.
    """
    left = min(seconds_left(), LONGEST)
    try:
        return max(int(min(left, float(given)) if given else left), 2)
    except ValueError:
        raise ConfigurationError(
            f"an option of the URL, connect_timeout, is {quoted(given)}; expected seconds"
        ) from None
