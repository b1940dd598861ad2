"""Deadlines for unresponsive PostgreSQL servers.

psycopg waits for its socket in a loop that wakes up ten times a second and notifies the operation,
a generator, that nothing is ready. No timeout of libpq or of TCP ends the wait for a response.
"""

import math
import time
from collections.abc import Generator
from typing import Any

from eventhub_checkpoints._shared.deadline import seconds_left
from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints.errors import ConfigurationError

CANCEL_SHARE = 0.1
"""Share of the remaining time that is reserved for cancelling the request on the server."""
USUAL_CANCEL = 0.1
"""Seconds that a cancellation takes across a network: a separate connection, and one request."""
LEAST_CANCEL = 0.02
"""Seconds; psycopg treats a timeout of 0 as none."""
LONGEST = 3600.0
"""Seconds, for a call without a deadline."""


class CutOffError(Exception):
    """The server did not answer in time. Not an OSError: psycopg would assume a closed socket."""


def cut_off(operation: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """Run an operation of psycopg; raise if it still waits when the time is over.

    An operation that leaves no time for its cancellation is not started: the server might carry
    it out long afterwards.

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
    """Return the interval at which a wait checks the deadline, in seconds."""
    return min(0.1, max(seconds_left() / 20, 0.005))


def cancel_seconds() -> float | None:
    """Return how long to wait for a cancellation by the server; None if no time is left."""
    return seconds_left() if seconds_left() > LEAST_CANCEL else None


def connect_seconds(given: Any) -> int:
    """Return the `connect_timeout` of a new connection, or that of the URL if it is less.

    At least 2 whole seconds, as libpq and psycopg require; the operation itself has a deadline.

    Raises:
        ConfigurationError: the URL's value is not a number.
    """
    left = min(seconds_left(), LONGEST)
    try:
        return max(int(min(left, float(given)) if given else left), 2)
    except ValueError:
        raise ConfigurationError(
            f"an option of the URL, connect_timeout, is {quoted(given)}; expected seconds"
        ) from None
